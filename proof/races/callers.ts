import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Answer, Call } from './caller.ts'

const program = new URL('caller.ts', import.meta.url)
/** Processes that call functions of their own, all against one store. */
export interface Callers extends AsyncDisposable {
  processes: number
  /** Makes calls at once, the first in the first process, the second in the second …; answers what each was answered. */
  together(calls: readonly Call[]): Promise<Answer[][]>
}

export async function startCallers(processes: number): Promise<Callers> {
  const children = Array.from({ length: processes }, () => fork(program, { execArgv: [] }))
  await Promise.all(children.map(answerOf))
  return {
    processes,
    together: async (calls) => {
      const shares = children.map((_, place) => calls.filter((__, index) => index % processes === place))
      const answers = await Promise.all(children.map((child, place) => ask(child, shares[place] ?? [])))
      return calls.map((_, index) => answers[index % processes]?.[Math.floor(index / processes)] ?? [])
    },
    [Symbol.asyncDispose]: async () => {
      const ends = children.map((child) => once(child, 'exit'))
      for (const child of children) child.disconnect()
      await Promise.all(ends)
    },
  }
}

function ask(child: ChildProcess, calls: readonly Call[]): Promise<Answer[][]> {
  const answered = answerOf(child)
  child.send(calls)
  return answered
}

async function answerOf(child: ChildProcess): Promise<any> {
  const settled = new AbortController()
  const { signal } = settled
  const died = once(child, 'exit', { signal }).then(() => {
    throw new Error('A process of callers died.')
  })
  try {
    const [answer] = await Promise.race([once(child, 'message', { signal }), died])
    return answer
  } finally {
    settled.abort()
    died.catch(() => undefined)
  }
}
