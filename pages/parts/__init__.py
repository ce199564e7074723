"""What pages are made of. Each module draws one thing or turns rows into what is drawn; none holds SQL.

By screen; a name that begins like another belongs to it.

    index.py, pulse.py, routes.py, texts.py, kernels.py     the open index, news, texts by hash, a run's kernels
    table.py, figures.py, plot.py, bars.py, dialogs.py, wording.py, client/   what every screen is drawn with
    overview    runs_table.py, runs_filter.py, row_actions.py
    run         run_header.py, key_figures.py, now.py, stream.py, step_feed.py, alerts.py, freeze.py, spending.py
    curve       curve.py, traces.py, marks.py, phases.py, curve_chart.py, lineage_strip.py, lanes.py
    kernel      candidate_header.py, kernel_panel.py, why.py, story.py, trust.py, explain.py, keys.py
    its tabs    diff_tab.py, source_tab.py, errors_tab.py, repair_tab.py, prompts_tab.py, profile_tab.py, trust_tab.py
    profile     roofline.py, machine_use.py, stall_figure.py, launches_table.py, metrics_table.py, advice_table.py
    steering    steering_panel.py, steer.py, try_again.py, fork_form.py, stop_desk.py, hint_dialog.py, command_list.py
    a person    answer_desk.py, leave_desk.py, attendance_panel.py
    compare     compare_choice.py, compare_chart.py, compare_table.py, compare_kernels.py, remeasure_panel.py
    report      report_run.py, report_comparison.py, report_html.py
    machines    api.py, api_runs.py, api_answers.py, metrics_text.py
    access      access.py, login.py, steering_access.py
"""
