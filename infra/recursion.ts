import { type Task, tasks } from '../packages/contract/src/task.ts'

const queuesSentTo = ({ capabilities }: Task): string[] =>
  capabilities.flatMap((capability) => (capability.startsWith('queue:') ? [capability.slice('queue:'.length)] : []))

const consumersOf = (queue: string): [string, Task][] =>
  Object.entries<Task>(tasks).filter(
    ([, { trigger }]) => typeof trigger === 'object' && 'queue' in trigger && trigger.queue === queue,
  )

/** Whether messages that a consumer sends can lead back to it, directly or through other consumers. */
export function canLoop(name: string): boolean {
  const reachedNames = new Set<string>()
  const pendingTasks = Object.entries<Task>(tasks).filter(([each]) => each === name)
  for (const [, task] of pendingTasks) {
    const nextTasks = queuesSentTo(task)
      .flatMap(consumersOf)
      .filter(([each]) => !reachedNames.has(each))
    for (const [each] of nextTasks) reachedNames.add(each)
    pendingTasks.push(...nextTasks)
  }
  return reachedNames.has(name)
}
