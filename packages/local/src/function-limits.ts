import { type Task, tasks, defaultFunctionTimeoutSeconds } from '@platform/contract/task'

const tasksByName: Readonly<Record<string, Task>> = tasks

const timeoutSecondsOf = (functionName: string): number =>
  tasksByName[functionName]?.timeoutSeconds ?? defaultFunctionTimeoutSeconds

export const timeoutMsOf = (functionName: string): number => timeoutSecondsOf(functionName) * 1000

/** Whether a function may run longer than an HTTP request. */
export const isLongRunning = (functionName: string): boolean =>
  timeoutSecondsOf(functionName) > defaultFunctionTimeoutSeconds

/** Returns six times the timeout of the consumer, as AWS recommends. */
export const visibilityTimeoutSeconds = (queueName: string): number => timeoutSecondsOf(`queue/${queueName}`) * 6
