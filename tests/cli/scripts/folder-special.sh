# SPDX-License-Identifier: Apache-2.0
# What is no file in a folder is passed over; a FIFO that is named is read.
rm -rf fs && mkdir fs fs/only && cp small.json fs/ && mkfifo fs/x.tacho fs/y.json fs/only/z.json
ln -s /dev/zero fs/zero.json
timeout 20 $bin/tacho-convert fs -t csv -o fs.csv && grep -c . fs.csv
timeout 20 $bin/tacho-analyze fs -r check | head -n 1
timeout 20 $bin/tacho-convert fs/only -t csv
echo "$?"
cat small.json >fs/y.json &
timeout 20 $bin/tacho-convert fs/y.json -t csv -q | cmp - a.csv
