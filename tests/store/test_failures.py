"""What errors of the driver mean to callers, where provoking them for real would need a broken network."""

import pytest

from app.errors import Invalid, Unavailable
from app.store.failures import CommitUnknown, Contended, translate, translated


@pytest.mark.parametrize("error", [ConnectionResetError(), TimeoutError(), OSError("broken pipe")])
def test_a_commit_whose_answer_is_lost_is_unknown(error: Exception) -> None:
    assert type(translate(error, committing=True)) is CommitUnknown
    assert type(translate(error)) is Unavailable


def test_what_may_have_happened_is_not_tried_again() -> None:
    """`Database.run` repeats `Contended` only; a commit of unknown outcome must not look like one."""
    assert not issubclass(CommitUnknown, Contended)


def test_our_own_errors_pass() -> None:
    with pytest.raises(Invalid), translated():
        raise Invalid("as it is")
