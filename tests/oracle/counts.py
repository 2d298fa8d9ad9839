# SPDX-License-Identifier: Apache-2.0
"""What held and what did not, for checks that go on after a failure."""


class Counts:
    """Counts; says what failed."""

    def __init__(self):
        self.passed = self.failed = 0

    def that(self, held, what):
        """One check."""
        self.passed += bool(held)
        self.failed += not held
        if not held:
            print("not ok -", what)
