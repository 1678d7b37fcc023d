import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:net'

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

const listenInChild = `
  const server = require('node:net').createServer().listen(0, process.argv[1], () => process.send('', server))
  process.once('disconnect', () => process.exit())`

/**
 * A network namespace for clients and one for servers, with a cable between them. No interface of this machine changes,
 * because Chromium aborts requests when one does.
 */
export class IsolatedNetwork implements Disposable {
  readonly clients = `clients-${process.pid}`
  readonly servers = `servers-${process.pid}`
  /** The address of the servers. */
  readonly host = '198.51.100.1'

  constructor() {
    for (const name of [this.clients, this.servers]) ip('netns', 'add', name)
    const clientEnd = ['veth', 'peer', 'name', 'cable', 'netns', this.clients]
    ip('-n', this.servers, 'link', 'add', 'cable', 'type', ...clientEnd)
    ip('-n', this.servers, 'addr', 'add', `${this.host}/30`, 'dev', 'cable')
    ip('-n', this.clients, 'addr', 'add', '198.51.100.2/30', 'dev', 'cable')
    for (const name of [this.clients, this.servers])
      for (const device of ['lo', 'cable']) ip('-n', name, 'link', 'set', device, 'up')
  }

  /** Opens a port for a server of this process in the namespace of the servers. */
  async openPort(): Promise<Server> {
    const args = ['netns', 'exec', this.servers, process.execPath, '-e', listenInChild, this.host]
    const child = spawn('ip', args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    const [, port] = await once(child, 'message')
    child.disconnect()
    await once(child, 'exit')
    return port
  }

  plug(): void {
    ip('-n', this.servers, 'link', 'set', 'cable', 'up')
  }

  pull(): void {
    ip('-n', this.servers, 'link', 'set', 'cable', 'down')
  }

  [Symbol.dispose](): void {
    for (const name of [this.clients, this.servers]) ip('netns', 'delete', name)
  }
}
