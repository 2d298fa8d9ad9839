# SPDX-License-Identifier: Apache-2.0
$bin/tacho-analyze block.tacho -r check --strict 2>&1 | grep -e BAD -e tacho-analyze
$bin/tacho-analyze block.tacho -r check --strict -q -f json -o strict.check 2>/dev/null
rc=$?
grep -c '"bad"' strict.check
exit $rc
