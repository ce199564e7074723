"""What a person does to a run: the panel, the dialogs, the forms for a reply or an approval, the commands sent."""
