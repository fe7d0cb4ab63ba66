"""The one commit of a job: the files that its workers wrote come in, what they replace goes, and the note says why.

delta-rs writes the log's entry and takes care that two writers never make the same version.  The entry carries a Delta
transaction, the version of the source that was folded: a run that finds a newer one there was overtaken and leaves it be;
one that is overtaken while it commits is refused.  Until the entry is there, no reader sees any of the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from ballast.adapters.arrow_schema import arrow_schema
from ballast.errors import Refused, Unavailable
from ballast.pipeline.part_files import PartFile, Target
from ballast.pipeline.table_log import Note


def replace_parts(target: Target, files: Sequence[PartFile], note: Note) -> bool:
    """Replace the parts that the note names by these files, in one commit; False where a newer run has done it already.

    Raises ``Refused`` when another run changed these parts in the meantime, ``Unavailable`` when the store failed.
    """
    transaction = Transaction(f"{note.job}/{note.source_id}", note.source_version)
    properties = CommitProperties(custom_metadata={"userMetadata": note.text()}, app_transactions=[transaction])
    return _commit(target, files, properties, replaced=note.replaced, transaction=transaction)


def replace_all(target: Target, files: Sequence[PartFile]) -> None:
    """Replace the whole table in one commit; readers see the old rows or the new ones.

    Raises as ``replace_parts`` does.
    """
    # Its number tells nothing.  Two at once conflict by the name, even where the table is empty and neither takes out a file.
    transaction = Transaction(target.table.name, 0)
    _commit(target, files, CommitProperties(app_transactions=[transaction]))


def _commit(
    target: Target,
    files: Iterable[PartFile],
    properties: CommitProperties,
    *,
    replaced: Sequence[str] | None = None,
    transaction: Transaction | None = None,
) -> bool:
    name, by = target.table.name, list(target.table.partition_by)
    try:
        table = DeltaTable(target.url)
        if transaction is not None and _overtaken(table, transaction):
            return False
        table.create_write_transaction(
            [_added(file, by) for file in files],
            mode="overwrite",
            schema=arrow_schema(target.table.columns),
            partition_by=by,
            partition_filters=None if replaced is None else [(by[0], "in", list(replaced))],
            commit_properties=properties,
        )
    except CommitFailedError as conflict:
        raise Refused(
            f"Another pipeline run changed the table {name} at the same time.",
            hint="Nothing was written twice; run again when the other one is done.",
        ) from conflict
    except (DeltaError, OSError) as failure:
        raise Unavailable(
            f"The table {name} could not be committed ({type(failure).__name__}).",
            hint="Nothing half-written is visible. Check the store's address and credentials, and run again.",
        ) from failure
    return True


def _overtaken(table: DeltaTable, transaction: Transaction) -> bool:
    done = table.transaction_version(transaction.app_id)
    return done is not None and done >= transaction.version


def _added(file: PartFile, by: Sequence[str]) -> AddAction:
    stats: dict[str, object] = {"numRecords": file.rows}
    if file.first_cluster is not None:
        stats |= {"minValues": {"cluster": file.first_cluster}, "maxValues": {"cluster": file.last_cluster}}
        stats["nullCount"] = {"cluster": 0}
    return AddAction(
        path=file.path,
        size=file.size_bytes,
        partition_values=dict.fromkeys(by, file.part),
        modification_time=file.written_ms,
        data_change=True,
        stats=json.dumps(stats),
    )
