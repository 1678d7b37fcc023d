import { fork } from 'node:child_process'
import { once } from 'node:events'

export interface Children extends AsyncDisposable {
  request: (index: number, message: unknown) => Promise<any>
  requestAll: (messageFor: (index: number) => unknown) => Promise<any[]>
}

/** Starts one process for each list of arguments, with the environment of this process. */
export function startChildren(program: URL, args: readonly (readonly string[])[]): Children {
  const children = args.map((each) => {
    const child = fork(program, each, { execArgv: [] })
    const exited = once(child, 'exit')
    const failed = exited.then(() => Promise.reject(new Error(`A process of ${program.pathname} has exited.`)))
    failed.catch(() => undefined)
    return { child, exited, failed }
  })
  const request = async (index: number, message: unknown): Promise<any> => {
    const { child, failed } = children[index] ?? {}
    if (child === undefined || failed === undefined) throw new Error(`There are ${children.length} processes.`)
    const reply = once(child, 'message')
    child.send(message as object)
    return (await Promise.race([reply, failed]))[0]
  }
  return {
    request,
    requestAll: (messageFor) => Promise.all(children.map((_, index) => request(index, messageFor(index)))),
    [Symbol.asyncDispose]: async () => {
      for (const { child } of children) if (child.connected) child.disconnect()
      await Promise.all(children.map(({ exited }) => exited))
    },
  }
}
