import { type Task, tasks, defaultFunctionTimeoutSeconds } from '@platform/contract/task'

/** How long functions may take: one place for whoever runs them and whoever hands them messages. */

const known: Readonly<Record<string, Task>> = tasks

const timeoutSecondsOf = (functionName: string): number =>
  known[functionName]?.timeoutSeconds ?? defaultFunctionTimeoutSeconds

/** The most that a function may take. */
export const timeoutMsOf = (functionName: string): number => timeoutSecondsOf(functionName) * 1000

/** Whether a function may take longer than one that somebody waits for. */
export const mayTakeMinutes = (functionName: string): boolean =>
  timeoutSecondsOf(functionName) > defaultFunctionTimeoutSeconds

/** How long a message is nobody else's: six times what its function may take, as Lambda asks. */
export const visibilityTimeoutSeconds = (queueName: string): number => timeoutSecondsOf(`queue/${queueName}`) * 6
