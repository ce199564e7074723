-- The index over all journals. It can be deleted and is made anew from the files.
-- What a run is, its record says (storage.run.record); fold.py writes what the record says into `runs`, `progress`,
-- `kernels` and `steps`, a row in the place of the one of its key. The rows of the other tables stand for one line of a
-- file each, and are only added. `events` has every line of every journal: what one page alone reads of it is read there.
--
-- `seq` is the line's number in its journal, `time` its time in seconds since the epoch. No keys and no indexes: byte
-- offsets make reading exact. Mappings and records are JSON text.
--
-- The file's name carries the hash of this text, so a change here starts a new index, refilled from the journals: raise the
-- version when fold.py writes something else into the same columns. Version 9.

-- One row per run: its settings, and what the record says of it as a whole. state: a RunState. depths to stagnation_depths:
-- the limits in force, asked_depths that of the start. hardware_limit (with what was measured before a kernel raised it, and the least share of its operations that a correct kernel executed), steering, question and approval are records,
-- second_* the further baseline; warned: the limits of which four fifths were used, since they were last changed; settled_seq: the line with which
-- the last step index ended.
CREATE TABLE runs (
    run_id VARCHAR, task_name VARCHAR, kernel_class VARCHAR, sizes VARCHAR, toolchain VARCHAR, language VARCHAR,
    model VARCHAR, strategy VARCHAR, base_policy VARCHAR, expose_from_depth BIGINT, profile_schedule VARCHAR,
    version BIGINT, precision VARCHAR, has_recording BOOLEAN, created_at DOUBLE, is_demo BOOLEAN, is_example BOOLEAN,
    is_imported BOOLEAN, forked_run VARCHAR, forked_number BIGINT, replay_of VARCHAR,
    depths BIGINT, max_model_calls BIGINT, max_tokens BIGINT, max_cost_usd DOUBLE, max_wall_s DOUBLE,
    target_speedup DOUBLE, stagnation_depths BIGINT, asked_depths BIGINT,
    state VARCHAR, state_reason VARCHAR, started_at DOUBLE, ended_at DOUBLE, engine_began_at DOUBLE,
    device VARCHAR, device_model VARCHAR, hardware_limit VARCHAR, second_name VARCHAR, second_speedup DOUBLE,
    second_low DOUBLE, second_high DOUBLE, second_noise DOUBLE, second_latency_ms DOUBLE,
    second_baseline_latency_ms DOUBLE, second_failure VARCHAR, steering VARCHAR, question VARCHAR, approval VARCHAR, approval_asked_at DOUBLE, model_calls BIGINT, tokens BIGINT, uncounted_calls BIGINT,
    cost_usd DOUBLE, warned VARCHAR[], warned_seq BIGINT, settled_seq BIGINT
);

-- What changes with almost every event of a run, so that the rest can be remembered. engine_s: the time that engines worked
-- on steps, as far as it is known; of the step in flight until counted_until. open_spans: each a Span, of what goes on; idle_since: since when nothing but the model has the work.
-- call_outcomes: each an OutcomeRow (storage.run.call_outcomes).
CREATE TABLE progress (
    run_id VARCHAR, last_seq BIGINT, last_event_at DOUBLE, depth BIGINT, engine_s DOUBLE, counted_until DOUBLE, device_s DOUBLE,
    finished_steps BIGINT, completed BIGINT, idle_since DOUBLE, open_spans VARCHAR[], call_outcomes VARCHAR[]
);

-- Who had the work from when to when (storage.run.waiting), a row for each span that has ended. number: that of its kernel.
CREATE TABLE spans (
    run_id VARCHAR, seq BIGINT, lane VARCHAR, began DOUBLE, ended DOUBLE, what VARCHAR, step BIGINT, number BIGINT,
    outcome VARCHAR, device VARCHAR
);

-- What a person calls a run, and what was found of its kernels (each a Mark); the last row of a run holds.
CREATE TABLE labels (
    run_id VARCHAR, seq BIGINT, time DOUBLE, name VARCHAR, tags VARCHAR[], note VARCHAR, is_archived BOOLEAN, marks VARCHAR[]
);

-- step and candidate_id: what the event is about, NULL where it is about none.
CREATE TABLE events (
    run_id VARCHAR, seq BIGINT, time DOUBLE, kind VARCHAR, step BIGINT, candidate_id VARCHAR, json VARCHAR
);

-- One row per kernel. Figures are NULL unless it stands as correct and timed; timed_seq is the line of that timing,
-- first_timed_seq that of the first one that gave figures, spent_* what the run had spent then (NULL: unknown), measured_ms
-- its latency whatever became of it since. built: the verdict of its first build, is_try: whether it counts as a try of the model, is_compiled: whether the last one worked. predictions: the lines of what was foretold of it. profiled_*: its last profile.
CREATE TABLE kernels (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, candidate_id VARCHAR, number BIGINT, parent_id VARCHAR,
    second_parent_id VARCHAR, base_id VARCHAR, depth BIGINT, generation BIGINT, repair BIGINT, trajectory BIGINT,
    origin VARCHAR, summary VARCHAR, source_blob VARCHAR, diff_blob VARCHAR, lines_added BIGINT, lines_removed BIGINT,
    technique VARCHAR, predictions BIGINT[], built VARCHAR, is_compiled BOOLEAN, verdict VARCHAR, message VARCHAR, judged_seq BIGINT,
    speedup DOUBLE, low DOUBLE, high DOUBLE, noise DOUBLE, latency_ms DOUBLE, baseline_latency_ms DOUBLE,
    baseline VARCHAR, timed_seq BIGINT, first_timed_seq BIGINT, timed_at DOUBLE, spent_s DOUBLE, spent_calls BIGINT, spent_tokens BIGINT,
    spent_usd DOUBLE, spent_device_s DOUBLE,
    is_best BOOLEAN, is_tied BOOLEAN, is_accepted BOOLEAN, is_try BOOLEAN, is_profile_exposed BOOLEAN,
    looks BIGINT, broken BIGINT, profiled_seq BIGINT, profiled_ms DOUBLE, disturbed VARCHAR, measured_ms DOUBLE
);

-- One row per step, as it was begun last. seconds and ended_as (its kind) are NULL until it finishes; cut_off_s: what is
-- known beside them to have gone into it, since it was cut off or is in flight. is_try: a try without a
-- kernel. result: a StepResult.
CREATE TABLE steps (
    run_id VARCHAR, seq BIGINT, first_seq BIGINT, first_time DOUBLE, step BIGINT, kind VARCHAR, depth BIGINT,
    candidate_id VARCHAR, started_at DOUBLE, ended_at DOUBLE, seconds DOUBLE, cut_off_s DOUBLE, ended_as VARCHAR, outcome VARCHAR,
    is_in_flight BOOLEAN, is_try BOOLEAN, made_id VARCHAR, result VARCHAR
);

-- How step indexes ended, and what had been spent by then.
CREATE TABLE depths (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, depth BIGINT, outcome VARCHAR, candidate_id VARCHAR,
    base_id VARCHAR, is_profile_exposed BOOLEAN, reason VARCHAR, reward DOUBLE, spent_s DOUBLE, spent_calls BIGINT,
    spent_tokens BIGINT, spent_usd DOUBLE, spent_device_s DOUBLE
);

-- Calls that were paid for, those without a usable reply too: their finish_reason is the failure.
CREATE TABLE calls (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, role VARCHAR, depth BIGINT, candidate_id VARCHAR,
    model VARCHAR, prompt_blob VARCHAR, reply_blob VARCHAR, input_tokens BIGINT, output_tokens BIGINT,
    cached_tokens BIGINT, reasoning_tokens BIGINT, cost_usd DOUBLE, seconds DOUBLE, finish_reason VARCHAR,
    is_profile_exposed BOOLEAN, is_estimated BOOLEAN
);

CREATE TABLE patches (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, candidate_id VARCHAR, rung VARCHAR,
    is_applied BOOLEAN, edit_count BIGINT, reason VARCHAR, edits_blob VARCHAR, form VARCHAR
);

-- What a step expects of the change that it makes or advises: gain is base latency over the new kernel's, NULL if not
-- told. candidate_id is the kernel that the step made, NULL where its reply is a review.
CREATE TABLE predictions (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, candidate_id VARCHAR, technique VARCHAR, gain DOUBLE
);

-- Lines of commands.jsonl: what was asked. What came of it stands in `events`.
CREATE TABLE commands (
    run_id VARCHAR, seq BIGINT, command_id VARCHAR, kind VARCHAR, argument VARCHAR, asked_by VARCHAR, asked_at DOUBLE
);

-- What is wrong with a run's files. kind: unreadable, missing (numbers that the journal skips), repeated, or newer (of
-- another version, no damage). position: byte offset of the line in the file.
CREATE TABLE problems (run_id VARCHAR, file VARCHAR, position BIGINT, kind VARCHAR, message VARCHAR);

-- How far each file is read. Added to on every batch; the largest position counts. inode tells a replaced file apart,
-- seq is the number of the last event read.
CREATE TABLE offsets (run_id VARCHAR, file VARCHAR, inode BIGINT, position BIGINT, lines BIGINT, seq BIGINT);

-- The folds of long runs, each as it stood at a position of its journal: a server that starts again goes on from there.
CREATE TABLE snapshots (run_id VARCHAR, position BIGINT, seq BIGINT, fold BLOB);
