import { type Task, tasks, defaultFunctionTimeoutSeconds } from '@platform/contract/task'

const known: Readonly<Record<string, Task>> = tasks

const timeoutSecondsOf = (functionName: string): number =>
  known[functionName]?.timeoutSeconds ?? defaultFunctionTimeoutSeconds

/** The time limit of a function. */
export const timeoutMsOf = (functionName: string): number => timeoutSecondsOf(functionName) * 1000

/** Whether the time limit of a function exceeds that of a request. */
export const isLongRunning = (functionName: string): boolean =>
  timeoutSecondsOf(functionName) > defaultFunctionTimeoutSeconds

/** The visibility timeout of a queue: six times the limit of its function, as Lambda requires. */
export const visibilityTimeoutSeconds = (queueName: string): number => timeoutSecondsOf(`queue/${queueName}`) * 6
