"""Sentences for what happens beside the steps: baselines, limits, classes, questions, approvals, replays, imports."""

from __future__ import annotations

BASELINES = """
SELECT seq, time AS at, 'baseline' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id,
    CASE WHEN speedup IS NULL THEN 'failed' ELSE 'measured' END AS outcome,
    CASE WHEN speedup IS NULL
        THEN printf('Baseline %s not measured: %s', name, coalesce(nullif(failure, ''), 'no reason was recorded'))
    ELSE printf('Baseline %s measured: %.2f×', name, speedup)
        || printf(' over eager, %.4g ms', latency_ms) END AS text
FROM baselines WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

LIMITS = """
SELECT seq, time AS at, 'limit' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id, 'measured' AS outcome,
    CASE WHEN seq > (SELECT min(l.seq) FROM limits l WHERE l.run_id = $run)
        THEN 'Hardware limit measured again, since a kernel was faster: ' ELSE 'Hardware limit measured: ' END
        || printf('%s, %.4g GB/s', device, bandwidth_gb_s) || coalesce(printf(', %.4g GFLOP/s', peak_gflop_s), '')
        AS text
FROM limits WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

CLASSES = """
SELECT seq, time AS at, 'class' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id, kernel_class AS outcome,
    'Kernel class set by the model: ' || kernel_class AS text
FROM classes WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

BUDGETS = """
SELECT seq, time AS at, 'budget' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id, 'changed' AS outcome,
    'Limits changed: ' || concat_ws(', ', printf('%d depths', depths),
        format('{:,} model calls', max_model_calls), format('{:,} tokens', max_tokens),
        printf('$%.2f', max_cost_usd), printf('%.0f s', max_wall_s), printf('target %.2f×', target_speedup),
        printf('stop after %d depths without gain', stagnation_depths)) AS text
FROM budgets WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

QUESTIONS = """
SELECT seq, time AS at, 'question' AS kind, step, depth, candidate_id, 'asked' AS outcome,
    'Waiting for a reply by hand: ' || role AS text
FROM questions WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

APPROVALS = """
SELECT seq, time AS at, 'leave' AS kind, step, depth, candidate_id,
    CASE WHEN kind IS NOT NULL THEN 'asked' WHEN is_given THEN 'given' ELSE 'refused' END AS outcome,
    CASE WHEN kind IS NULL
        THEN CASE WHEN is_given THEN 'Step approved: ' ELSE 'Step skipped: ' END || reason
    ELSE 'Waiting for approval of the step: ' || kind
        || CASE fallback WHEN 'never' THEN '' ELSE printf('; %s after %.0f s without an answer', fallback, after_s) END
    END AS text
FROM leaves WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

DIVERGENCES = """
SELECT seq, time AS at, 'replay' AS kind, step, NULL AS depth, candidate_id,
    CASE WHEN is_bridged THEN 'bridged' ELSE 'lost' END AS outcome,
    'Replies differ from the recording: ' || reason || CASE WHEN is_bridged THEN '' ELSE '; no reply found' END AS text
FROM divergences WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

IMPORTS = """
SELECT i.seq, i.time AS at, 'import' AS kind, NULL AS step, NULL AS depth, i.candidate_id, i.status AS outcome,
    printf('Kernel %d imported from %s', coalesce(n.number, 0), i.file)
    || CASE WHEN i.status = '' THEN '' ELSE ', status there: ' || i.status END AS text
FROM imports i LEFT JOIN (SELECT candidate_id, number FROM numbered
    WHERE run_id = $run) n ON n.candidate_id = i.candidate_id
WHERE i.run_id = $run AND i.seq > $after ORDER BY i.seq DESC LIMIT $limit
"""

PATCHES = """
SELECT p.seq, p.time AS at, 'patch' AS kind, p.step, NULL AS depth, p.candidate_id, 'patch_failed' AS outcome,
    printf('The reply''s %s did not apply to kernel %d', CASE p.rung WHEN 'edits' THEN 'line edits'
        WHEN 'reask' THEN 'line edits (second try)' WHEN 'search_replace' THEN 'search and replace'
        ELSE p.rung END, coalesce(n.number, 0)) || CASE WHEN p.reason = '' THEN '' ELSE ': ' || p.reason END AS text
FROM patches p LEFT JOIN (SELECT candidate_id, number FROM numbered
    WHERE run_id = $run) n ON n.candidate_id = p.candidate_id
WHERE p.run_id = $run AND NOT p.is_applied AND p.seq > $after ORDER BY p.seq DESC LIMIT $limit
"""

NEWS = (BASELINES, LIMITS, CLASSES, BUDGETS, QUESTIONS, APPROVALS, DIVERGENCES, IMPORTS, PATCHES)
