/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests.h - every unit test, one row each: X(NAME) runs test_NAME(), which stands in some
 * tests/unit/test_*.c.  Rows are grouped by file.
 */
#ifndef TESTS_UNIT_TESTS_H
#define TESTS_UNIT_TESTS_H

/* clang-format off */
#define TEST_LIST(X) \
	X(status_fail) \
	X(status_fail_adds_to_itself) \
	X(status_fail_cuts) \
	X(status_fail_tames) \
	X(status_codes) \
	X(bytes_numbers) \
	X(bytes_cut_sticks) \
	X(bytes_each_width_cut) \
	X(bytes_lengths) \
	X(bytes_varint) \
	X(bytes_varint_overlong) \
	X(bytes_zigzag) \
	X(bytes_raw) \
	X(buf_puts) \
	X(buf_grows) \
	X(buf_ceiling_sticks) \
	X(buf_ceiling_exact) \
	X(buf_no_memory) \
	X(buf_reserve) \
	X(buf_decimal) \
	X(buf_number_texts) \
	X(buf_putf) \
	X(arena_take) \
	X(arena_text) \
	X(arena_ceiling) \
	X(arena_ceiling_reached) \
	X(arena_alignment) \
	X(arena_no_memory) \
	X(crc32c_known) \
	X(crc32c_all_lengths) \
	X(crc32c_goes_on) \
	X(crc32c_masked) \
	X(unit_counts) \
	X(unit_sizes) \
	X(unit_times) \
	X(unit_shares) \
	X(unit_instants) \
	X(unit_part_of_text) \
	X(unit_long_text) \
	X(unit_formats) \
	X(unit_round_trip) \
	X(option_defaults) \
	X(option_long) \
	X(option_letters) \
	X(option_operands) \
	X(option_until_operand) \
	X(option_unknown) \
	X(option_wrong_values) \
	X(option_environment) \
	X(option_set_text) \
	X(option_variable) \
	X(option_help) \
	X(option_help_wraps) \
	X(option_help_ceiling) \
	X(trace_names) \
	X(trace_name_bytes) \
	X(trace_rows_stay) \
	X(trace_processes) \
	X(trace_devices) \
	X(trace_tracks) \
	X(trace_shapes) \
	X(trace_windows) \
	X(trace_losses) \
	X(trace_ceiling) \
	X(records_tables) \
	X(records_lookups) \
	X(records_words) \
	X(records_offsets) \
	X(spool_in_memory) \
	X(spool_runs) \
	X(spool_ties) \
	X(spool_groups) \
	X(spool_sorted) \
	X(spool_wide) \
	X(spool_no_scratch) \
	X(name_rules_phases) \
	X(name_rules_pushed) \
	X(name_rules_steps) \
	X(name_rules_kernels) \
	X(name_rules_own) \
	X(name_rules_refused) \
	X(name_rules_ceiling) \
	X(name_short_cut) \
	X(name_short_wrapper) \
	X(name_short_any) \
	/* the end of the list */
/* clang-format on */

#endif
