import { deadLetterOperation, runOperation } from '@platform/core/operations/run'
import { type OperationReference } from '@platform/core/aws/queues'
import { moduleKinds, type PickRuntime } from '@platform/worker/modules/handlers'

/** Operations on modules, done as the worker's function does them, on a runtime of the test's own. */

export const perform = (reference: OperationReference, pick: PickRuntime): Promise<void> =>
  runOperation(reference, moduleKinds(pick))

export const bury = (reference: OperationReference, pick: PickRuntime): Promise<void> =>
  deadLetterOperation(reference, moduleKinds(pick))
