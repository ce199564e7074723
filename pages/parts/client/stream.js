// The reply while the model writes it: read in small pieces from the run folder, shown as text, never run or stored.
const KEEP = 12000

export default function (component) {
  const { data, parentElement } = component
  const box = parentElement.querySelector(".stream")
  const title = parentElement.querySelector(".title")
  const body = parentElement.querySelector("pre")
  if (box.dataset.step !== String(data.step)) {
    box.dataset.step = data.step
    box.read = 0
    body.textContent = ""
  }
  let isAsking = false
  const show = () => {
    const isEmpty = !body.textContent
    box.classList.toggle("idle", isEmpty || !data.is_writing)
    title.textContent = data.is_writing
      ? (isEmpty ? "Waiting for the model's first words" : "The model is writing")
      : data.idle
  }
  const read = async () => {
    if (isAsking || !data.is_writing || document.hidden) return
    isAsking = true
    try {
      const query = `run=${encodeURIComponent(data.run)}&from=${box.read}`
      const answer = await fetch(new URL(`api/stream?${query}`, document.baseURI))
      if (!answer.ok) return
      const { start, end, text } = await answer.json()
      const follow = body.scrollHeight - body.scrollTop - body.clientHeight < 40
      if (start < box.read) body.textContent = ""
      box.read = end
      if (text) body.textContent = (body.textContent + text).slice(-KEEP)
      if (follow) body.scrollTop = body.scrollHeight
      show()
    } catch { /* read again at the next tick */ } finally { isAsking = false }
  }
  show()
  read()
  clearInterval(box.timer)
  box.timer = setInterval(read, 300)
  return () => clearInterval(box.timer)
}
