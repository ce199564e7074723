// A run as a film. What is on screen is told by a scene and a phase of it alone; time only leads from one to the next.
// Nothing is asked of the server until the film has ended.
const YEAR_S = 31_536_000, ASK_MS = 20_000, LEAST = 0.85 // of the usual height of a line
const PLAY = "M4 2.5v11l9-5.5z", PAUSE = "M4 3h3v10H4zM9 3h3v10H9z"

function make(tag, className, text = "") {
  const node = document.createElement(tag)
  node.className = className
  node.textContent = text
  return node
}

class Player {
  constructor(box) {
    this.box = box
    this.find = name => box.querySelector(name)
    this.scene = this.phase = 0
    this.isStill = matchMedia("(prefers-reduced-motion: reduce)").matches
    this.press = event => this.key(event)
    this.see = () => { this.wait(); this.ask() }
    this.size = new ResizeObserver(() => { this.place(); this.curve(false) })
    this.dress = () => this.place()
  }

  take(data, send) {
    const isNew = !this.data
    Object.assign(this, { data, send, scenes: data.film.scenes, last: data.film.scenes.length - 1 })
    this.tell()
    if (!isNew) return
    this.build()
    this.box.classList.add("filled")
    if (this.isStill) this.go(this.last)
    else { this.show(); this.play() }
  }

  // What is the same in all scenes.
  build() {
    this.find("h1").textContent = this.data.what
    this.find(".about").textContent = this.data.film.about
    this.find(".dots").replaceChildren(...this.scenes.map((scene, i) => {
      const item = make("li", ""), dot = make("button", "")
      dot.title = dot.ariaLabel = scene.name
      dot.onclick = () => this.go(i)
      item.append(dot)
      return item
    }))
    this.find(".back").onclick = () => this.go(this.scene - 1)
    this.find(".forth").onclick = () => this.go(this.scene + 1)
    this.find(".play").onclick = () => this.toggle()
    this.find(".skip").onclick = this.find(".first").onclick = () => this.leave()
    this.find(".open").onclick = () => this.send("leave", "example")
  }

  // What the server knows better by now: how far the demo is.
  tell() {
    const { title, text, steer, go, skip } = this.data.next
    for (const [name, words] of [["h2", title], [".text", text], [".steer", steer], [".first", go], [".skip", skip]])
      this.find(name).textContent = words
    this.find(".open").hidden = !this.data.may_open
  }

  leave() { this.send("leave", this.data.next.leave) }

  listen() {
    document.addEventListener("keydown", this.press)
    document.addEventListener("visibilitychange", this.see)
    document.fonts.addEventListener("loadingdone", this.dress)
    this.size.observe(this.find(".curve div"))
    this.wait()
    this.later()
  }

  rest() {
    document.removeEventListener("keydown", this.press)
    document.removeEventListener("visibilitychange", this.see)
    document.fonts.removeEventListener("loadingdone", this.dress)
    this.size.disconnect()
    clearTimeout(this.timer)
    clearTimeout(this.asking)
  }

  key(event) {
    const target = event.composedPath()[0]
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('[role="dialog"]')) return
    if (event.key === " " && target.closest?.("button, a, summary")) return  // the button's own
    const act = {
      " ": () => this.toggle(), ArrowLeft: () => this.go(this.scene - 1), ArrowRight: () => this.go(this.scene + 1), Escape: () => this.leave(),
    }[event.key]
    if (!act) return
    event.preventDefault()
    act()
  }

  toggle() {
    if (this.isPlaying) return this.pause()
    if (this.scene === this.last) this.put(0, 0)
    this.play()
  }

  play() {
    this.isPlaying = true
    this.buttons()
    this.wait()
  }

  pause() {
    this.isPlaying = false
    clearTimeout(this.timer)
    this.buttons()
  }

  // A step leads to what a scene ends with, where everything of it is to be seen.
  go(scene) {
    this.pause()
    const wanted = Math.max(0, Math.min(this.last, scene))
    this.put(wanted, this.scenes[wanted].seconds.length - 1)
  }

  put(scene, phase) {
    Object.assign(this, { scene, phase })
    this.show()
    this.ask()
  }

  // At the end, for as long as somebody looks at it, how far the demo is.
  ask() {
    if (this.scene !== this.last || document.hidden) return
    this.send("ended", true)
    this.later()
  }

  later() {
    clearTimeout(this.asking)
    this.asking = setTimeout(() => this.ask(), ASK_MS)
  }

  // Until the next phase is due; a tab that nobody looks at waits.
  wait() {
    clearTimeout(this.timer)
    if (!this.isPlaying || document.hidden) return
    this.timer = setTimeout(() => {
      if (this.phase + 1 < this.scenes[this.scene].seconds.length) this.put(this.scene, this.phase + 1)
      else if (this.scene < this.last) this.put(this.scene + 1, 0)
      else return this.pause()
      this.wait()
    }, 1000 * this.scenes[this.scene].seconds[this.phase])
  }

  show() {
    const scene = this.scenes[this.scene], isOver = this.phase === scene.seconds.length - 1
    if (this.drawn !== scene) { this.draw(scene); this.place() }
    this.rows(scene)
    this.find(".stages").replaceChildren(...scene.stages.map((stage, i) => {
      const isDone = i < this.phase - 1, isNext = i === this.phase - 1
      const [name, sign] = isDone ? stage.is_passed ? ["passed", "✓"] : ["failed", "✗"] : isNext ? ["next", "●"] : ["", "○"]
      const item = make("li", name)
      item.append(make("span", "sign", sign), make("span", "", stage.name))
      if (isDone) item.append(make("span", "time", stage.about))
      return item
    }))
    const gain = this.find(".gain")
    gain.className = `gain ${isOver ? scene.tone : ""}`
    gain.querySelector("b").textContent = isOver ? scene.value : ""
    gain.querySelector("span").textContent = isOver ? scene.change : ""
    this.curve(true)
    this.buttons()
  }

  draw(scene) {
    this.drawn = scene
    this.box.classList.toggle("at_end", this.scene === this.last)
    this.find(".actor").textContent = scene.is_kernel ? `${scene.name}: ${scene.actor}` : scene.actor
    this.find(".caption").textContent = scene.caption
    this.find(".rows_about").textContent = scene.rows_about
    this.find(".rows").scrollTop = 0  // while no line is there: asked for later it would have them drawn, and then move
    this.find(".rows").replaceChildren(...scene.rows.map(([mark, line]) => {
      const row = make("div", { "+": "added", "-": "removed", "⋯": "gap" }[mark] ?? "same"), text = make("code", "")
      text.innerHTML = line  // made of tokens that the server has escaped
      row.append(make("span", "mark", { "+": "+", "-": "−", "⋯": "⋯" }[mark] ?? ""), text)
      return row
    }))
    this.find(".dots").querySelectorAll("button").forEach((dot, i) => {
      dot.className = i < this.scene ? "past" : ""
      if (i === this.scene) dot.setAttribute("aria-current", "step")
      else dot.removeAttribute("aria-current")
    })
  }

  // A long line wraps and takes as many places as it needs; all are a little smaller where that lets them fit. What is only
  // put where it belongs is not seen to move there.
  place() {
    const box = this.find(".rows"), rows = [...box.children]
    if (!rows.length || !box.clientHeight) return
    const measure = line => {
      if (line) box.style.setProperty("--line", `${line}px`)
      else box.style.removeProperty("--line")
      const height = parseFloat(getComputedStyle(rows[0]).lineHeight)
      for (const row of rows) row.places = Math.round(row.offsetHeight / height)
      return { height, isAll: height * rows.reduce((sum, row) => sum + row.places, 0) + 2 * rows[0].offsetTop <= box.clientHeight }
    }
    box.classList.add("placing")
    let { height, isAll } = measure()
    for (let line = Math.floor(height) - 1; !isAll && line >= height * LEAST; line--) ({ isAll } = measure(line))
    if (!isAll) measure()
    this.rows(this.drawn)
    void box.offsetHeight
    box.classList.remove("placing")
  }

  // Before the change what is to come has no place yet; after it each line has its own. Lines move, none is made anew.
  rows(scene) {
    const isWritten = this.phase > 0 || scene.seconds.length === 1, all = [...this.find(".rows").children]
    const added = all.filter(row => row.className.startsWith("added"))
    let place = 0
    for (const row of all) {
      const isAdded = row.classList.contains("added")
      row.style.setProperty("--at", place)
      if (isWritten || !isAdded) place += row.places ?? 1
      row.style.setProperty("--late", isAdded ? `${Math.min(45, 800 / added.length) * added.indexOf(row)}ms` : "0ms")
      row.classList.toggle("written", isWritten)
    }
    this.find(".rows").style.setProperty("--count", place)
  }

  curve(isShown) {
    if (!this.drawn) return
    const isOver = this.phase === this.drawn.seconds.length - 1
    const told = this.scenes.slice(0, this.scene + (isOver ? 1 : 0)).filter(scene => scene.is_kernel).length
    if (isShown && told === this.told) return
    drawCurve(this.find(".curve div"), this.data.film, told, isShown && !this.isStill && told === (this.told ?? 0) + 1)
    this.told = told
  }

  buttons() {
    const atEnd = this.scene === this.last
    this.find(".play span").textContent = this.isPlaying ? "Pause" : atEnd ? "Play again" : "Play"
    this.find(".play path").setAttribute("d", this.isPlaying ? PAUSE : PLAY)
    this.find(".back").disabled = this.scene === 0
    this.find(".forth").disabled = atEnd
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  document.cookie = `${data.cookie}=seen; path=/; max-age=${YEAR_S}; SameSite=Lax`
  const box = parentElement.querySelector(".film")
  box.player ??= new Player(box)
  box.player.take(data, setTriggerValue)
  box.player.listen()
  return () => box.player.rest()
}
