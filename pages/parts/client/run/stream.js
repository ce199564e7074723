// The reply while the model writes it: read in small pieces from the run folder, shown as text, never run or stored.
const KEEP = 12000

function show(box) {
  const isEmpty = !box.querySelector("pre").textContent
  box.classList.toggle("idle", isEmpty || !box.shown.is_writing)
  const writing = isEmpty ? "Waiting for the first token" : "The model is writing"
  box.querySelector(".title").textContent = box.shown.is_writing ? writing : box.shown.idle
}

async function read(box) {
  const { run, step, is_writing } = box.shown
  if (box.isAsking || !is_writing || document.hidden) return
  box.isAsking = true
  try {
    const query = `run=${encodeURIComponent(run)}&from=${box.read}`
    const answer = await fetch(new URL(`api/stream?${query}`, document.baseURI))
    if (answer.ok && step === box.shown.step) append(box, await answer.json())
  } catch { /* read again at the next tick */ } finally { box.isAsking = false }
}

function append(box, { start, end, text }) {
  const body = box.querySelector("pre")
  const follow = !box.classList.contains("open") || body.scrollHeight - body.scrollTop - body.clientHeight < 40
  if (start < box.read) body.textContent = ""
  box.read = end
  if (text) body.textContent = (body.textContent + text).slice(-KEEP)
  if (follow) body.scrollTop = body.scrollHeight
  show(box)
}

function unfold(box, isOpen) {
  const button = box.querySelector("button"), body = box.querySelector("pre")
  box.classList.toggle("open", isOpen)
  button.setAttribute("aria-expanded", isOpen)
  button.textContent = isOpen ? "fold" : "whole reply"
  body.scrollTop = body.scrollHeight
}

export default function (component) {
  const { data, parentElement } = component
  const box = parentElement.querySelector(".stream")
  if (box.dataset.step !== String(data.step)) {
    box.dataset.step = data.step
    box.read = 0
    box.querySelector("pre").textContent = ""
  }
  const button = box.querySelector("button")
  button.onclick = () => { box.isTouched = true; unfold(box, !box.classList.contains("open")) }
  // A run's very first reply is all there is to see, so it is seen whole until a person folds it or a kernel is there.
  if (!box.isTouched && data.is_first !== box.wasFirst) unfold(box, data.is_first && data.is_writing)
  box.wasFirst = data.is_first && data.is_writing
  box.shown = data  // Trap: a request begun with older data may still be on its way; it must see what holds now.
  show(box)
  read(box)
  clearInterval(box.timer)
  box.timer = setInterval(() => read(box), 300)
  return () => clearInterval(box.timer)
}
