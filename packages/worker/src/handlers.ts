import type { OperationHandlers } from '@platform/core/operations/run'

/** Handlers of every operation. The first message that needs them loads them. */
export async function operationHandlers(): Promise<OperationHandlers> {
  const [{ moduleHandlers }, { updateHandlers }] = await Promise.all([
    import('./modules/handlers.ts'),
    import('./updates/handlers.ts'),
  ])
  return { ...moduleHandlers(), ...updateHandlers() }
}
