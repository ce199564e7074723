// Desktop notifications of this browser: off until a person turns them on here. While off, nothing is asked of the server.
const WANTED = "tilewright:notify", EVERY_MS = 5000

const wanted = () => { try { return localStorage.getItem(WANTED) === "on" } catch { return false } }
const may = () => "Notification" in window && Notification.permission === "granted"

function show(box) {
  const isOn = wanted() && may()
  box.querySelector("button").textContent = isOn ? "No more desktop notifications" : "Get desktop notifications"
  box.querySelector("span").textContent = isOn
    ? "You are told when a run waits, ends, crashes or has used 80 % of a limit, while a page is open."
    : "Notification" in window && Notification.permission === "denied" ? "This browser forbids them for this site." : ""
}

function tell(notice) {
  const shown = new Notification(notice.title, { body: notice.text, tag: `tilewright:${notice.run}:${notice.kind}` })
  shown.onclick = () => { window.focus(); location.assign(new URL(`run?run=${encodeURIComponent(notice.run)}`, document.baseURI)) }
}

async function look(box) {
  if (!wanted() || !may()) return
  try {
    const answer = await fetch(new URL(`api/notices?since=${box.last ?? ""}`, document.baseURI))
    if (!answer.ok) return
    const { last, notices } = await answer.json()
    // A server that was started again counts from the beginning.
    box.last = last
    notices.forEach(tell)
  } catch { /* the server is away for a moment */ }
}

export default function ({ parentElement }) {
  const box = parentElement.querySelector(".bell")
  show(box)
  box.querySelector("button").onclick = async () => {
    if (wanted() && may()) localStorage.setItem(WANTED, "off")
    else if ("Notification" in window && await Notification.requestPermission() === "granted") localStorage.setItem(WANTED, "on")
    show(box)
    look(box)
  }
  clearInterval(box.timer)
  look(box)
  box.timer = setInterval(() => look(box), EVERY_MS)
  return () => clearInterval(box.timer)
}
