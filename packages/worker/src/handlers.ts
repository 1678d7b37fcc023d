import type { OperationHandlers } from '@platform/core/operations/run'

/** Loads the handlers at the first operation, because a scan does not need them. */
export const moduleOperations = async (): Promise<OperationHandlers> =>
  (await import('./modules/handlers.ts')).moduleHandlers()

export const platformOperations = async (): Promise<OperationHandlers> =>
  (await import('./updates/handlers.ts')).updateHandlers()
