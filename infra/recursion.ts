import { type Task, tasks } from '../packages/contract/src/task.ts'

const sentBy = ({ capabilities }: Task): string[] =>
  capabilities.flatMap((capability) => (capability.startsWith('queue:') ? [capability.slice('queue:'.length)] : []))

const consumersOf = (queue: string): [string, Task][] =>
  Object.entries<Task>(tasks).filter(
    ([, { trigger }]) => typeof trigger === 'object' && 'queue' in trigger && trigger.queue === queue,
  )

/** Whether messages of a consumer can lead back to it, directly or through other consumers. */
export function canLoop(name: string): boolean {
  const reached = new Set<string>()
  const pending = Object.entries<Task>(tasks).filter(([each]) => each === name)
  for (const [, task] of pending) {
    const next = sentBy(task)
      .flatMap(consumersOf)
      .filter(([each]) => !reached.has(each))
    for (const [each] of next) reached.add(each)
    pending.push(...next)
  }
  return reached.has(name)
}
