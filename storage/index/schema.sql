-- The index over all journals and over the knowledge base. Every table but `runs`, `offsets` and `problems` holds rows that
-- one line of a file produced by itself, so rows are only ever added (or a whole run, or the whole knowledge base, is
-- removed) and a rebuild gives the same rows again.
-- `seq` is the line's number in its journal, `time` its time in seconds since the epoch. No keys and no indexes: byte
-- offsets make reading exact. Mappings are JSON text.
--
-- Version 3. The file's name carries the hash of this text, so a change here starts a new index, refilled from the journals:
-- raise the version when projection.py writes something else into the same columns.

CREATE TABLE runs (
    run_id VARCHAR, task_name VARCHAR, kernel_class VARCHAR, class_is_proposed BOOLEAN, sizes VARCHAR,
    toolchain VARCHAR, language VARCHAR, model VARCHAR, strategy VARCHAR, base_policy VARCHAR, max_repairs BIGINT,
    max_regenerations BIGINT, expose_from_depth BIGINT, profile_schedule VARCHAR, version BIGINT, collect VARCHAR, precision VARCHAR, recording VARCHAR,
    depths BIGINT, max_model_calls BIGINT, max_tokens BIGINT, max_cost_usd DOUBLE, max_wall_s DOUBLE,
    target_speedup DOUBLE, stagnation_depths BIGINT, created_at DOUBLE, is_demo BOOLEAN, is_example BOOLEAN,
    forked_run VARCHAR, forked_candidate VARCHAR, forked_number BIGINT, replay_of VARCHAR
);

CREATE TABLE events (run_id VARCHAR, seq BIGINT, time DOUBLE, kind VARCHAR, json VARCHAR);

-- state: a RunState. is_final marks RunEnded, is_start marks RunStarted.
CREATE TABLE states (
    run_id VARCHAR, seq BIGINT, time DOUBLE, state VARCHAR, reason VARCHAR, is_start BOOLEAN, is_final BOOLEAN,
    error_blob VARCHAR
);

-- phase: started, finished, resumed (an engine began: it goes on with the step in flight) or ended (no engine works on).
CREATE TABLE steps (
    run_id VARCHAR, seq BIGINT, time DOUBLE, phase VARCHAR, step BIGINT, kind VARCHAR, depth BIGINT, candidate_id VARCHAR,
    seconds DOUBLE, outcome VARCHAR
);

CREATE TABLE candidates (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, candidate_id VARCHAR, parent_id VARCHAR, base_id VARCHAR,
    depth BIGINT, generation BIGINT, repair BIGINT, origin VARCHAR, source_blob VARCHAR, summary VARCHAR,
    flags VARCHAR[], trajectory BIGINT, second_parent_id VARCHAR
);

CREATE TABLE diffs (
    run_id VARCHAR, seq BIGINT, candidate_id VARCHAR, parent_id VARCHAR, diff_blob VARCHAR, lines_added BIGINT,
    lines_removed BIGINT
);

CREATE TABLE patches (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, candidate_id VARCHAR, rung VARCHAR,
    is_applied BOOLEAN, edit_count BIGINT, reason VARCHAR, edits_blob VARCHAR, form VARCHAR
);

CREATE TABLE diagnoses (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, candidate_id VARCHAR, text_blob VARCHAR
);

-- Replies about a kernel that are no kernel; those with a problem could not be read.
CREATE TABLE reviews (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, label VARCHAR, depth BIGINT,
    candidate_id VARCHAR, text_blob VARCHAR, summary VARCHAR, problem VARCHAR,
    flags VARCHAR[]
);

-- What a step expects of the change that it makes or advises: gain is base latency over the new kernel's, NULL if not
-- told. candidate_id is the kernel that the step made, NULL where its reply is a review.
CREATE TABLE predictions (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, candidate_id VARCHAR, technique VARCHAR, gain DOUBLE
);

-- A call that waits for a person. It is open until the step has a reply for it or ends.
CREATE TABLE questions (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, role VARCHAR, depth BIGINT, candidate_id VARCHAR,
    prompt_blob VARCHAR, expects VARCHAR
);

-- A step that waits for a yes (kind is set), or that silence decided (is_given is set).
CREATE TABLE leaves (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, kind VARCHAR, depth BIGINT, candidate_id VARCHAR,
    fallback VARCHAR, after_s DOUBLE, is_given BOOLEAN, reason VARCHAR
);

CREATE TABLE divergences (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, role VARCHAR, candidate_id VARCHAR,
    is_bridged BOOLEAN, reason VARCHAR
);

-- What another system recorded about a candidate; never mixed with evaluations, which are ours.
CREATE TABLE imports (
    run_id VARCHAR, seq BIGINT, time DOUBLE, candidate_id VARCHAR, file VARCHAR, status VARCHAR, latency_ms DOUBLE,
    baseline_latency_ms DOUBLE, message VARCHAR
);

-- One row per stage (compile, check, time) of an evaluation; columns of the other stages are NULL. message is one line.
CREATE TABLE evaluations (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, candidate_id VARCHAR, stage VARCHAR, verdict VARCHAR,
    seconds DOUBLE, message VARCHAR, detail VARCHAR, evidence VARCHAR, timeline VARCHAR,
    is_cached BOOLEAN, log_blob VARCHAR, remarks VARCHAR[],
    max_error DOUBLE, max_abs_error DOUBLE, tolerance DOUBLE, reference_error DOUBLE, trials VARCHAR[],
    precision VARCHAR, seed BIGINT,
    speedup DOUBLE, speedup_low DOUBLE, speedup_high DOUBLE, noise DOUBLE, latency_ms DOUBLE,
    baseline_latency_ms DOUBLE, baseline VARCHAR, candidate_ms DOUBLE[], baseline_ms DOUBLE[]
);

-- One row per workload of a timing, for tasks that have several, in the task's order; sizes is a JSON object by name.
CREATE TABLE workloads (
    run_id VARCHAR, seq BIGINT, time DOUBLE, candidate_id VARCHAR, number BIGINT, sizes VARCHAR, speedup DOUBLE,
    speedup_low DOUBLE, speedup_high DOUBLE, noise DOUBLE, latency_ms DOUBLE, baseline_latency_ms DOUBLE
);

-- One row per check that stands behind an evaluation, in the order they were made. value is what was measured, allowed
-- what it is compared with; both are NULL where a check compares no numbers.
CREATE TABLE proofs (
    run_id VARCHAR, seq BIGINT, number BIGINT, candidate_id VARCHAR, stage VARCHAR, check_group VARCHAR,
    check_name VARCHAR, standing VARCHAR, detail VARCHAR, value DOUBLE, allowed DOUBLE
);

CREATE TABLE correctness_errors (
    run_id VARCHAR, seq BIGINT, time DOUBLE, candidate_id VARCHAR, verdict VARCHAR, trial VARCHAR, first_index BIGINT[],
    expected DOUBLE, actual DOUBLE, wrong_count BIGINT, total_count BIGINT, max_abs_error DOUBLE, max_rel_error DOUBLE,
    shape BIGINT[], heat DOUBLE[][], message VARCHAR
);

-- A failed attempt to profile has a failure and nothing else.
CREATE TABLE profiles (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, candidate_id VARCHAR, kernel_hash VARCHAR, bound VARCHAR,
    summary VARCHAR, raw_blob VARCHAR, report_blob VARCHAR, seconds DOUBLE, missing VARCHAR[], ceilings VARCHAR,
    evidence VARCHAR, failure VARCHAR, samples BIGINT, sass_blob VARCHAR, timeline VARCHAR
);

-- Source lines with samples, most first; file is empty for a line of the candidate's own.
CREATE TABLE profile_lines (
    run_id VARCHAR, seq BIGINT, number BIGINT, candidate_id VARCHAR, kernel VARCHAR, file VARCHAR, line BIGINT,
    samples BIGINT, stall VARCHAR, stall_samples BIGINT, text VARCHAR
);

-- The profiler's own advice on one launch, in its order. gain_percent: time that could be saved, NULL if not told.
CREATE TABLE profile_advice (
    run_id VARCHAR, seq BIGINT, number BIGINT, candidate_id VARCHAR, launch BIGINT, kernel VARCHAR, rule VARCHAR,
    kind VARCHAR, text VARCHAR, gain_percent DOUBLE
);

CREATE TABLE profile_metrics (
    run_id VARCHAR, seq BIGINT, candidate_id VARCHAR, kernel_hash VARCHAR, launch BIGINT, kernel VARCHAR,
    metric VARCHAR, unit VARCHAR, value DOUBLE
);

CREATE TABLE model_calls (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, role VARCHAR, depth BIGINT, candidate_id VARCHAR,
    model VARCHAR, prompt_blob VARCHAR, reply_blob VARCHAR, input_tokens BIGINT, output_tokens BIGINT,
    cached_tokens BIGINT, reasoning_tokens BIGINT, cost_usd DOUBLE, seconds DOUBLE, finish_reason VARCHAR,
    is_profile_exposed BOOLEAN, is_estimated BOOLEAN
);

-- Calls as they were sent: one that nothing later ended is being answered.
CREATE TABLE calls_sent (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, role VARCHAR, depth BIGINT, candidate_id VARCHAR,
    prompt_blob VARCHAR
);

-- Calls that gave no usable reply. Those that may have cost something are among model_calls too, with the failure as
-- their finish_reason. retry_in_s is NULL when no other try followed.
CREATE TABLE call_failures (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, attempt BIGINT, model VARCHAR, failure VARCHAR,
    reason VARCHAR, is_charged BOOLEAN, retry_in_s DOUBLE
);

-- Sweeps over the numbers that a kernel declares open to tuning: tunables is a JSON list of name, value and candidates.
CREATE TABLE sweeps (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, depth BIGINT, candidate_id VARCHAR, tunables VARCHAR, most BIGINT
);

-- One row per stage (compile, check, time) of a variant; numbers, by name, stands in that of its build. A timing that is_brief
-- chooses which variants are timed as any kernel is.
CREATE TABLE variants (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, candidate_id VARCHAR, number BIGINT, stage VARCHAR, numbers VARCHAR,
    is_brief BOOLEAN, verdict VARCHAR, message VARCHAR, seconds DOUBLE, speedup DOUBLE, speedup_low DOUBLE,
    speedup_high DOUBLE, noise DOUBLE, latency_ms DOUBLE, baseline_latency_ms DOUBLE
);

-- What the knowledge base answered about a kernel: its state, and one row of `consulted` per technique, from place 0.
CREATE TABLE consultations (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, depth BIGINT, candidate_id VARCHAR, state VARCHAR,
    bottleneck VARCHAR, state_confidence DOUBLE, secondary VARCHAR[], why VARCHAR, metrics VARCHAR, mark VARCHAR
);

CREATE TABLE consulted (
    run_id VARCHAR, seq BIGINT, step BIGINT, candidate_id VARCHAR, place BIGINT, technique VARCHAR, category VARCHAR,
    about VARCHAR, helps VARCHAR, hurts VARCHAR, expected_gain DOUBLE, confidence DOUBLE, attempts BIGINT, faster BIGINT,
    slower BIGINT, failed BIGINT, is_negative BOOLEAN, inherited_from VARCHAR, parts VARCHAR[]
);

CREATE TABLE taught (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, depth BIGINT, revision_id VARCHAR, summary VARCHAR,
    revision_blob VARCHAR
);

CREATE TABLE depths (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, depth BIGINT, outcome VARCHAR, candidate_id VARCHAR,
    base_id VARCHAR, is_profile_exposed BOOLEAN, reason VARCHAR, reward DOUBLE
);

-- Edges that a walk through the graph of techniques weighed, those of one kernel from the best on.
CREATE TABLE weighed (
    run_id VARCHAR, seq BIGINT, depth BIGINT, place BIGINT, candidate_id VARCHAR, source VARCHAR, target VARCHAR,
    visits BIGINT, value DOUBLE, prior DOUBLE, score DOUBLE, is_taken BOOLEAN
);

-- In which order kernels drawn for one step index were evaluated. scores: one for each of candidates, none where the reward
-- model does not rank.
CREATE TABLE rankings (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, depth BIGINT, candidates VARCHAR[], "order" VARCHAR[],
    scores DOUBLE[], kernels BIGINT, correlation DOUBLE, arrival DOUBLE, why VARCHAR
);

-- Kernels of its own that the model had compiled, checked or profiled within a turn. A row that has no outcome is of when it
-- was asked for.
CREATE TABLE tool_calls (
    run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, call BIGINT, number BIGINT, tool VARCHAR, source_blob VARCHAR,
    outcome VARCHAR, summary VARCHAR, text_blob VARCHAR, seconds DOUBLE
);

-- Failure rules that the writers of kernels were told from a step on, and the rules one by one; none where they ended.
CREATE TABLE tellings (run_id VARCHAR, seq BIGINT, time DOUBLE, step BIGINT, depth BIGINT, mark VARCHAR);

CREATE TABLE told_rules (
    run_id VARCHAR, seq BIGINT, place BIGINT, name VARCHAR, signature VARCHAR, words VARCHAR, kernels BIGINT, runs BIGINT
);

-- phase: asked (a line of commands.jsonl, where seq counts its lines), acknowledged, effective or refused (the journal).
CREATE TABLE commands (
    run_id VARCHAR, seq BIGINT, time DOUBLE, command_id VARCHAR, phase VARCHAR, kind VARCHAR, argument VARCHAR,
    asked_by VARCHAR, asked_at DOUBLE, step BIGINT, note VARCHAR
);

-- What people call a run, one row per change with everything as it stands after it.
CREATE TABLE labels (
    run_id VARCHAR, seq BIGINT, time DOUBLE, name VARCHAR, tags VARCHAR[], note VARCHAR, is_archived BOOLEAN,
    changed_by VARCHAR
);

CREATE TABLE classes (run_id VARCHAR, seq BIGINT, time DOUBLE, kernel_class VARCHAR);

-- A further baseline against eager: speedup is eager latency over its own. One that cannot be had has only a failure.
CREATE TABLE baselines (
    run_id VARCHAR, seq BIGINT, time DOUBLE, name VARCHAR, speedup DOUBLE, speedup_low DOUBLE, speedup_high DOUBLE,
    noise DOUBLE, latency_ms DOUBLE, baseline_latency_ms DOUBLE, failure VARCHAR
);

CREATE TABLE limits (
    run_id VARCHAR, seq BIGINT, time DOUBLE, device VARCHAR, bandwidth_gb_s DOUBLE, peak_gflop_s DOUBLE,
    min_bytes BIGINT, min_flop BIGINT
);

-- Limits that a person set after the start; NULL is no limit.
CREATE TABLE budgets (
    run_id VARCHAR, seq BIGINT, time DOUBLE, depths BIGINT, max_model_calls BIGINT, max_tokens BIGINT,
    max_cost_usd DOUBLE, max_wall_s DOUBLE, target_speedup DOUBLE, stagnation_depths BIGINT
);

CREATE TABLE warnings (run_id VARCHAR, seq BIGINT, time DOUBLE, budget VARCHAR, used DOUBLE, allowed DOUBLE);

-- What is wrong with a run's files. kind: unreadable, missing (numbers that the journal skips), repeated, or newer (of
-- another version, no damage). position: byte offset of the line in the file.
CREATE TABLE problems (run_id VARCHAR, file VARCHAR, position BIGINT, kind VARCHAR, message VARCHAR);

-- How far each file is read. Added to on every batch; the largest position counts. inode tells a replaced file apart,
-- seq is the number of the last event read.
CREATE TABLE offsets (run_id VARCHAR, file VARCHAR, inode BIGINT, position BIGINT, lines BIGINT, seq BIGINT);

-- The knowledge base: tables without a run. `line` is that of its file; a revision's states, techniques and priors carry the
-- line of the revision and their place in it. The shipped seed is line 0. Which revisions count is worked out by whoever
-- asks (queries/knowledge.py).
CREATE TABLE revisions (
    line BIGINT, revision_id VARCHAR, time DOUBLE, made_by VARCHAR, why VARCHAR, reverts VARCHAR, origin VARCHAR,
    state_count BIGINT, technique_count BIGINT, prior_count BIGINT, transition_count BIGINT, rule_count BIGINT
);

CREATE TABLE kernel_states (
    line BIGINT, number BIGINT, name VARCHAR, bottleneck VARCHAR, about VARCHAR, secondary VARCHAR[], is_discovered BOOLEAN,
    inherits VARCHAR, is_disabled BOOLEAN
);

CREATE TABLE techniques (
    line BIGINT, number BIGINT, name VARCHAR, category VARCHAR, about VARCHAR, helps VARCHAR, hurts VARCHAR, classes VARCHAR[],
    languages VARCHAR[], architectures VARCHAR[], parts VARCHAR[], is_disabled BOOLEAN
);

CREATE TABLE priors (line BIGINT, number BIGINT, state VARCHAR, technique VARCHAR, gain DOUBLE, confidence DOUBLE);

CREATE TABLE transitions (
    line BIGINT, number BIGINT, source VARCHAR, target VARCHAR, think VARCHAR, method VARCHAR, before VARCHAR, after VARCHAR
);

-- What people say of failure rules.
CREATE TABLE rule_words (line BIGINT, number BIGINT, rule VARCHAR, words VARCHAR, is_disabled BOOLEAN);

-- What kernels show of failures; the first row of a run and candidate counts. rule: the one of the kernel's own failure.
CREATE TABLE failures (
    line BIGINT, run_id VARCHAR, candidate_id VARCHAR, time DOUBLE, language VARCHAR, toolchain VARCHAR, signature VARCHAR,
    is_repeat BOOLEAN, mends VARCHAR, words VARCHAR, told VARCHAR[], message VARCHAR, task VARCHAR, model VARCHAR,
    origin VARCHAR, rule VARCHAR
);

-- The first row of an id; gain_units and predicted_units are the logarithms that are summed, NULL where none counts.
CREATE TABLE evidence (
    line BIGINT, run_id VARCHAR, candidate_id VARCHAR, technique VARCHAR, outcome VARCHAR, time DOUBLE, state VARCHAR,
    task VARCHAR, kernel_class VARCHAR, language VARCHAR, toolchain VARCHAR, device VARCHAR, architecture VARCHAR,
    precision VARCHAR, strategy VARCHAR, model VARCHAR, parent_hash VARCHAR, child_hash VARCHAR, predicted_gain DOUBLE,
    gain DOUBLE, gain_low DOUBLE, gain_high DOUBLE, before VARCHAR, after VARCHAR, tokens BIGINT, error VARCHAR,
    origin VARCHAR, gain_units BIGINT, predicted_units BIGINT
);

-- Lines of the knowledge base that cannot be read.
CREATE TABLE knowledge_problems (file VARCHAR, position BIGINT, message VARCHAR);

-- The limits in force: those of the start, or the last ones a person set.
CREATE VIEW allowances AS
SELECT run_id, depths, max_model_calls, max_tokens, max_cost_usd, max_wall_s, target_speedup, stagnation_depths
FROM (SELECT *, 0 AS seq FROM runs UNION ALL BY NAME SELECT * FROM budgets)
QUALIFY seq = max(seq) OVER (PARTITION BY run_id);

-- The labels that hold.
CREATE VIEW labelled AS SELECT * FROM labels QUALIFY seq = max(seq) OVER (PARTITION BY run_id);

-- What is known about each candidate now: the last word of each stage. verdict is NULL until judged.
CREATE VIEW verdicts AS
SELECT run_id, candidate_id,
    arg_max(verdict, seq) FILTER (WHERE stage = 'check' OR verdict <> 'passed') AS verdict,
    arg_max(message, seq) FILTER (WHERE stage = 'check' OR verdict <> 'passed') AS message,
    max(seq) FILTER (WHERE stage = 'time') AS timing_seq,
    max(seq) AS seq
FROM evaluations GROUP BY run_id, candidate_id;

-- A timing counts only while the candidate stands as correct.
CREATE VIEW timings AS
SELECT v.run_id, v.candidate_id, e.seq, e.speedup, e.speedup_low, e.speedup_high, e.noise, e.latency_ms,
    e.baseline_latency_ms, e.baseline
FROM verdicts v JOIN evaluations e ON e.run_id = v.run_id AND e.seq = v.timing_seq
WHERE v.verdict = 'passed';

-- What stands: of each check the last word of each stage, and what was noted about a candidate's own edit and by a judge. A timing that
-- finds a wrong result ends as a check, which must not hide what the check before it had shown.
CREATE VIEW standings AS
SELECT run_id, candidate_id, seq, number, stage, check_group, check_name, standing, detail, value, allowed FROM proofs
QUALIFY seq = max(seq) OVER (PARTITION BY run_id, candidate_id, stage, check_group, check_name)
UNION ALL
SELECT run_id, candidate_id, seq, 0, 'write', 'screening', 'intent kept', 'flagged', unnest(flags), NULL, NULL
FROM candidates
UNION ALL
SELECT run_id, candidate_id, seq, 0, 'check', 'screening', 'soft verification', 'flagged', unnest(flags), NULL, NULL
FROM (FROM reviews WHERE problem = '' QUALIFY seq = max(seq) OVER (PARTITION BY run_id, candidate_id, label));

-- By more than the noise of both measurements and of two sessions: storage.results.relative.between_sessions in SQL.
CREATE MACRO is_faster(speedup, noise, other, other_noise) AS
    speedup / other > 1 + sqrt(noise * noise + other_noise * other_noise + 0.05 * 0.05);

-- A speed-up as pages write it, with no digit beyond what its noise supports: pages.parts.wording.speedup in SQL.
CREATE MACRO as_measured(speedup, noise) AS CASE WHEN noise > 0.5 THEN 'unknown speed-up' ELSE printf(CASE
    WHEN speedup >= 100 OR (noise > 0 AND speedup * noise >= 1) THEN '%.0f×'
    WHEN speedup >= 10 OR (noise > 0 AND speedup * noise >= 0.1) THEN '%.1f×' ELSE '%.2f×' END, speedup) END;

-- Three significant digits; milliseconds, and 1e9 of a unit per second, as pages write them (pages.parts.wording).
CREATE MACRO as_significant(value) AS printf(CASE WHEN value >= 99.95 THEN '%.0f' WHEN value >= 9.995 THEN '%.1f'
    WHEN value >= 0.9995 THEN '%.2f' WHEN value >= 0.09995 THEN '%.3f' ELSE '%.3g' END, value);
CREATE MACRO as_latency(ms) AS CASE WHEN ms >= 1000 THEN as_significant(ms / 1000) || ' s'
    WHEN ms >= 0.1 THEN as_significant(ms) || ' ms' ELSE as_significant(ms * 1000) || ' µs' END;
CREATE MACRO as_rate(giga, unit) AS CASE WHEN giga >= 1000 THEN as_significant(giga / 1000) || ' T'
    ELSE as_significant(giga) || ' G' END || unit;

-- Kernels that were the fastest correct one of their run when they were timed, abandoned branches included: each is the
-- best until the next. Worked out from the timings alone, as History.best_id is.
CREATE VIEW records AS
SELECT * FROM timings
QUALIFY speedup > coalesce(max(speedup) OVER (PARTITION BY run_id ORDER BY seq
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0);

-- Candidates with their verdict and, where `timings` has one, their timing beside the best of their run. is_tied: the best is
-- not faster beyond the noise.
CREATE VIEW judgements AS
SELECT * EXCLUDE (best_speedup, best_noise, place), seq IS NOT NULL AND place = 1 AS is_best,
    seq IS NOT NULL AND place > 1 AND NOT is_faster(best_speedup, best_noise, speedup, noise) AS is_tied
FROM (SELECT v.run_id, v.candidate_id, v.verdict, v.message, e.seq, e.speedup, e.speedup_low, e.speedup_high, e.noise,
        e.latency_ms, e.baseline_latency_ms, e.baseline, row_number() OVER fastest AS place,
        first_value(e.speedup) OVER fastest AS best_speedup, first_value(e.noise) OVER fastest AS best_noise
    FROM verdicts v LEFT JOIN evaluations e
        ON v.verdict = 'passed' AND e.run_id = v.run_id AND e.seq = v.timing_seq
    WINDOW fastest AS (PARTITION BY v.run_id ORDER BY e.speedup DESC NULLS LAST, e.seq NULLS LAST));

-- Those that are correct and timed.
CREATE VIEW ranked AS SELECT * EXCLUDE (verdict, message) FROM judgements WHERE seq IS NOT NULL;

-- The model of device that each run was timed on, as the engine's record has it: that of its last limit, without the
-- words of storage.results.hardware_limit.REACHED for one that a kernel has raised.
CREATE VIEW run_devices AS
SELECT run_id, replace(arg_max(device, seq), ', raised to what a kernel reached', '') AS model FROM limits GROUP BY run_id;

-- A kernel's number is that of its id, so that it stays the same where the line of an earlier one cannot be read.
CREATE VIEW numbered AS
SELECT *, coalesce(TRY_CAST(regexp_extract(candidate_id, '^c(\d+)$', 1) AS BIGINT),
    row_number() OVER (PARTITION BY run_id ORDER BY seq)) AS number FROM candidates;

-- What was said of a kernel, with the kernels that came of it in the same depth.
CREATE VIEW reviewed AS
SELECT a.run_id, c.candidate_id AS made_id, a.step, a.seq FROM reviews a JOIN candidates c ON c.run_id = a.run_id
    AND c.parent_id = a.candidate_id AND c.depth = a.depth AND c.seq > a.seq;

-- Predictions with the kernel that came of each, and that kernel's repairs: what was predicted holds for them too.
CREATE VIEW prediction_lines AS
WITH RECURSIVE line AS (
    SELECT p.run_id, p.seq, c.candidate_id AS made_id, c.candidate_id, c.base_id
    FROM predictions p LEFT JOIN reviewed a ON p.candidate_id IS NULL AND a.run_id = p.run_id AND a.seq = p.seq
    JOIN candidates c ON c.run_id = p.run_id AND c.candidate_id = coalesce(p.candidate_id, a.made_id)
    UNION
    SELECT l.run_id, l.seq, l.made_id, c.candidate_id, l.base_id FROM line l JOIN candidates c
        ON c.run_id = l.run_id AND c.parent_id = l.candidate_id AND c.origin = 'repair')
SELECT l.*, p.step, p.technique, p.gain FROM line l JOIN predictions p ON p.run_id = l.run_id AND p.seq = l.seq;

-- One row per prediction that a kernel came of, with the last of its line that is correct and timed, and the base.
CREATE VIEW prediction_results AS
SELECT e.run_id, e.seq, any_value(e.step) AS step, any_value(e.technique) AS technique, any_value(e.gain) AS predicted,
    arg_max(e.base_id, e.candidate_id) AS base_id, arg_max(t.candidate_id, t.seq) AS candidate_id,
    arg_max(t.speedup, t.seq) AS speedup, arg_max(t.noise, t.seq) AS noise,
    arg_max(b.speedup, t.seq) AS base_speedup, arg_max(b.noise, t.seq) AS base_noise
FROM prediction_lines e
LEFT JOIN timings t ON t.run_id = e.run_id AND t.candidate_id = e.candidate_id
LEFT JOIN timings b ON b.run_id = e.run_id AND b.candidate_id = e.base_id
GROUP BY e.run_id, e.seq;

-- Kernels that a depth ended with, and those that were tuned into one.
CREATE VIEW accepted_kernels AS
SELECT run_id, candidate_id FROM depths WHERE outcome = 'accepted'
UNION SELECT u.run_id, u.parent_id FROM candidates u JOIN depths x ON x.run_id = u.run_id AND x.candidate_id = u.candidate_id
    WHERE u.origin = 'tuned' AND x.outcome = 'accepted';

-- Kernels that came of a prompt with a profile: their own, or that of the review before them.
CREATE VIEW shown_profile AS
SELECT c.run_id, c.seq FROM candidates c JOIN model_calls m ON m.run_id = c.run_id AND m.step = c.step
    WHERE m.is_profile_exposed
UNION SELECT c.run_id, c.seq FROM reviewed a JOIN model_calls m ON m.run_id = a.run_id AND m.step = a.step
    JOIN candidates c ON c.run_id = a.run_id AND c.candidate_id = a.made_id WHERE m.is_profile_exposed;

CREATE VIEW attempts AS
SELECT c.run_id, c.seq, c.step, c.candidate_id, c.number,
    c.parent_id, c.second_parent_id, c.base_id, c.depth, c.generation, c.repair, c.trajectory, c.origin, v.verdict,
    v.speedup, v.speedup_low AS low, v.speedup_high AS high, v.latency_ms, v.baseline_latency_ms, v.noise,
    c.summary, d.lines_added, d.lines_removed, a.candidate_id IS NOT NULL AS is_accepted,
    c.seq > coalesce(s.settled_seq, 0) AS is_pending,
    coalesce(v.is_best, FALSE) AS is_best, coalesce(v.is_tied, FALSE) AS is_tied,
    p.seq IS NOT NULL AS is_profile_exposed, c.time AS created_at, c.source_blob, d.diff_blob,
    CASE WHEN v.verdict <> 'passed' THEN coalesce(v.message, '') ELSE '' END AS message
FROM numbered c
LEFT JOIN diffs d ON d.run_id = c.run_id AND d.seq = c.seq
LEFT JOIN judgements v ON v.run_id = c.run_id AND v.candidate_id = c.candidate_id
LEFT JOIN accepted_kernels a ON a.run_id = c.run_id AND a.candidate_id = c.candidate_id
LEFT JOIN shown_profile p ON p.run_id = c.run_id AND p.seq = c.seq
LEFT JOIN (SELECT run_id, max(seq) AS settled_seq FROM depths GROUP BY run_id) s ON s.run_id = c.run_id;

-- Every attempt of a run, those whose edits could not be applied included.
CREATE VIEW iterations AS
SELECT run_id, seq, step, depth, candidate_id, parent_id, coalesce(verdict, 'unjudged') AS outcome, speedup, message
FROM attempts
UNION ALL
SELECT p.run_id, p.seq, p.step, c.depth, NULL, p.candidate_id, 'patch_failed', NULL, p.reason
FROM patches p LEFT JOIN candidates c ON c.run_id = p.run_id AND c.candidate_id = p.candidate_id
WHERE NOT p.is_applied;

-- Steps with their ends. The last step of each step index that has not ended is in flight until it finishes or the run
-- ends; an engine that resumes the run, or has waited for a person, goes on with it, and its time counts from there.
CREATE VIEW moves AS
SELECT s.run_id, s.seq, s.step, s.kind, s.depth, s.candidate_id, f.seconds, f.ended_at,
    (s.step = l.last_step OR (s.step = s.last_of_depth AND d.depth IS NULL))
        AND f.seq IS NULL AND coalesce(l.ended_seq, 0) <= coalesce(l.resumed_seq, 0) AS is_in_flight,
    CASE WHEN is_in_flight THEN greatest(s.time, r.resumed_at) ELSE s.time END AS started_at,
    CASE WHEN f.seq IS NULL AND NOT is_in_flight THEN 'interrupted' ELSE f.outcome END AS outcome
FROM (SELECT run_id, step, max(seq) AS seq, max(time) AS time, arg_max(kind, seq) AS kind, arg_max(depth, seq) AS depth,
        arg_max(candidate_id, seq) AS candidate_id, max(step) OVER (PARTITION BY run_id, arg_max(depth, seq)) AS last_of_depth
        FROM steps WHERE phase = 'started' GROUP BY run_id, step) s
LEFT JOIN (SELECT DISTINCT run_id, depth FROM depths) d ON d.run_id = s.run_id AND d.depth = s.depth
JOIN (SELECT run_id, max(step) AS last_step, max(seq) FILTER (WHERE phase = 'ended') AS ended_seq,
        max(seq) FILTER (WHERE phase = 'resumed') AS resumed_seq FROM steps GROUP BY run_id) l ON l.run_id = s.run_id
LEFT JOIN (SELECT run_id, max(time) AS resumed_at FROM states WHERE state = 'running' GROUP BY run_id) r
    ON r.run_id = s.run_id
LEFT JOIN (SELECT run_id, step, max(seq) AS seq, arg_max(seconds, seq) AS seconds, arg_max(outcome, seq) AS outcome,
        arg_max(time, seq) AS ended_at
        FROM steps WHERE phase = 'finished' GROUP BY run_id, step) f ON f.run_id = s.run_id AND f.step = s.step;

-- The time that engines worked: the finished steps. What lies between them, pauses, waiting for a person and the time in
-- which no engine lived do not count, nor does a step that was broken off. Every figure of engine time is a sum over this.
CREATE VIEW worked AS SELECT run_id, seq, seconds FROM steps WHERE phase = 'finished';

CREATE VIEW steering AS
SELECT run_id, command_id,
    coalesce(any_value(kind) FILTER (WHERE phase = 'asked'), any_value(kind)) AS kind,
    coalesce(any_value(argument) FILTER (WHERE phase = 'asked'), any_value(argument)) AS argument,
    any_value(asked_by) AS asked_by,
    any_value(asked_at) AS asked_at,
    min(time) FILTER (WHERE phase = 'acknowledged') AS acknowledged_at,
    min(time) FILTER (WHERE phase = 'effective') AS effective_at,
    min(time) FILTER (WHERE phase = 'refused') AS refused_at,
    arg_min(step, seq) FILTER (WHERE phase = 'effective') AS effective_step,
    min(seq) FILTER (WHERE phase = 'effective') AS effective_seq,
    coalesce(arg_min(note, seq) FILTER (WHERE phase IN ('effective', 'refused')), '') AS note
FROM commands GROUP BY run_id, command_id;
