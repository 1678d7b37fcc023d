import { deadLetterOperation, runOperation } from '@platform/core/operations/run'
import { type OperationReference } from '@platform/core/aws/queues'
import { moduleHandlers, type RuntimeFactory } from '@platform/worker/modules/handlers'

/** Runs an operation on a module as the consumer of the updates queue does, on the test's runtime. */
export const runModuleOperation = (reference: OperationReference, pick: RuntimeFactory): Promise<void> =>
  runOperation(reference, moduleHandlers(pick))

export const deadLetterModuleOperation = (reference: OperationReference, pick: RuntimeFactory): Promise<void> =>
  deadLetterOperation(reference, moduleHandlers(pick))
