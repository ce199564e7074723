"""What a person does to a run: each act is one command, sent by `steer.py`.

steering_panel.py, command_list.py    the controls; what became of each command
verb_words.py                         what a verb's button shows, and what is told when it is on its way
dialogs.py, open_dialog.py            which dialog is open over a page that is drawn again and again; drawing it
command_dialogs.py, fork_dialog.py    model, base kernel, class, hint, stop; going on from an earlier kernel
package_dialog.py                     the package of a kernel or of a network's kernels, or why there is none
limits_dialog.py, options_form.py     the limits of a run; a form of a method's options
reply_form.py, approval.py            a reply in the place of the model; a yes or no before a step
drafts.py                             what was typed there and not sent yet
kernel_choice.py                      choosing a kernel that a depth can start from
"""
