import { deadLetterOperation, runOperation } from '@platform/core/operations/run'
import type { JobReference } from '@platform/core/aws/queues'
import { moduleHandlers, type RuntimeFactory } from '@platform/worker/modules/handlers'

export const runModuleOperation = (reference: JobReference, pick: RuntimeFactory): Promise<void> =>
  runOperation(reference, moduleHandlers(pick))

export const deadLetterModuleOperation = (reference: JobReference, pick: RuntimeFactory): Promise<void> =>
  deadLetterOperation(reference, moduleHandlers(pick))
