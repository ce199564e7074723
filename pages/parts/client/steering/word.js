// What became of the last act, over the page: a line of its own would move every button below it, and a button that
// moves between a finger's down and up is not clicked.
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector(".word")
  if (box.shown === data.at) return  // the page was drawn again: the same word, and its time runs
  box.shown = data.at
  clearTimeout(box.timer)
  box.textContent = data.text
  box.hidden = !data.text
  box.classList.toggle("error", data.is_error)
  box.timer = setTimeout(() => { box.hidden = true }, data.seconds * 1000)
}
