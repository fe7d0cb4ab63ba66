"""``ballast completion``: the line-completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the script that completes ballast's commands and options in a shell.

    \b
    bash   echo 'eval "$(ballast completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(ballast completion zsh)"' >> ~/.zshrc
    fish   ballast completion fish > ~/.config/fish/completions/ballast.fish
    """  # noqa: D301 — click reads the escape
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(ctx.find_root().command, {}, "ballast", "_BALLAST_COMPLETE").source())
    return 0
