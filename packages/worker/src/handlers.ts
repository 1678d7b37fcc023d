import type { OperationHandlers } from '@platform/core/operations/run'

/** The first operation loads the handlers; a scan does not need them. */
export async function operationHandlers(): Promise<OperationHandlers> {
  const [{ moduleHandlers }, { updateHandlers }] = await Promise.all([
    import('./modules/handlers.ts'),
    import('./updates/handlers.ts'),
  ])
  return { ...moduleHandlers(), ...updateHandlers() }
}
