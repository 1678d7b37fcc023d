import { execFileSync } from 'node:child_process'

const ip = (...args: string[]) => execFileSync('ip', args, { stdio: 'pipe' })

export const canIsolate = (() => {
  const name = `probe-${process.pid}`
  try {
    ip('netns', 'add', name)
    ip('netns', 'delete', name)
    return true
  } catch {
    return false
  }
})()

/** A network namespace with one cable to this machine. */
export class IsolatedNetwork implements Disposable {
  readonly name = `relay-${process.pid}`
  /** The address of this machine on the cable. */
  readonly host = '198.51.100.1'
  readonly #cable = `relay${process.pid % 100_000}`

  constructor() {
    const peer = `${this.#cable}p`
    ip('netns', 'add', this.name)
    ip('link', 'add', this.#cable, 'type', 'veth', 'peer', 'name', peer, 'netns', this.name)
    ip('addr', 'add', `${this.host}/30`, 'dev', this.#cable)
    ip('netns', 'exec', this.name, 'ip', 'addr', 'add', '198.51.100.2/30', 'dev', peer)
    for (const device of ['lo', peer]) ip('netns', 'exec', this.name, 'ip', 'link', 'set', device, 'up')
    this.plug()
  }

  plug(): void {
    ip('link', 'set', this.#cable, 'up')
  }

  pull(): void {
    ip('link', 'set', this.#cable, 'down')
  }

  [Symbol.dispose](): void {
    ip('link', 'delete', this.#cable)
    ip('netns', 'delete', this.name)
  }
}
