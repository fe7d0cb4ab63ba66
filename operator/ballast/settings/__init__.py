"""One YAML file and the environment become one frozen value."""

from ballast.settings.load import load_settings
from ballast.settings.model import Settings

__all__ = ["Settings", "load_settings"]
