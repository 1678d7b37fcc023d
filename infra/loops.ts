import { type Task, tasks } from '../packages/contract/src/task.ts'

/** The queues that a task may send to. */
const sentBy = ({ uses }: Task): string[] =>
  uses.flatMap((use) => (use.startsWith('queue:') ? [use.slice('queue:'.length)] : []))

const consumersOf = (queue: string): [string, Task][] =>
  Object.entries<Task>(tasks).filter(
    ([, { trigger }]) => typeof trigger === 'object' && 'queue' in trigger && trigger.queue === queue,
  )

/** Whether a consumer may send messages that lead back to it, by itself or by other consumers. */
export function loops(name: string): boolean {
  const reached = new Set<string>()
  const waiting = Object.entries<Task>(tasks).filter(([each]) => each === name)
  for (const [, task] of waiting) {
    const next = sentBy(task)
      .flatMap(consumersOf)
      .filter(([each]) => !reached.has(each))
    for (const [each] of next) reached.add(each)
    waiting.push(...next)
  }
  return reached.has(name)
}
