import * as z from 'zod'
import { type Item } from '../db/table.ts'
import { jsonString } from '../lib/json.ts'

/**
 * How operations are stored: jobs of the platform on itself (D26). They stand where other jobs stand, are listed and polled
 * like them, and belong to no cluster.
 */

export const operationTypes = ['ModuleInstall', 'ModuleUninstall', 'PlatformUpdate', 'PlatformRollback'] as const
export type OperationType = (typeof operationTypes)[number]

const StoredStep = z.object({
  name: z.string(),
  status: z.enum(['Pending', 'Running', 'Completed', 'Failed', 'Skipped']),
  message: z.string().optional(),
  startedAtMs: z.number().optional(),
  completedAtMs: z.number().optional(),
})
export type StoredStep = z.infer<typeof StoredStep>

const Facts = z.record(z.string(), z.unknown())

export const OperationRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  type: z.enum(operationTypes),
  status: z.enum(['Queued', 'Running', 'Completed', 'Failed']),
  statusReason: z.enum(['module_operation_failed', 'update_failed']).optional(),
  createdAtMs: z.number(),
  createdBy: z.string(),
  startedAtMs: z.number().optional(),
  completedAtMs: z.number().optional(),
  /** What callers are shown of what it is done with; of a shape that the type decides. */
  payload: jsonString(Facts),
  /** What its worker needs beyond that. */
  plan: jsonString(Facts),
  steps: jsonString(z.array(StoredStep)),
  /** The worker that does it, and until when nobody else may. */
  workerId: z.string().optional(),
  workUntilMs: z.number().default(0),
  /** How often a worker has begun it. */
  attempts: z.number().default(0),
  /** What there is to say at the end. */
  outcome: z.string().optional(),
})
export type OperationRecord = z.infer<typeof OperationRecord>

export const isOperation = (item: Item): boolean => operationTypes.some((type) => type === item['type'])

export const parseOperation = (item: Item): OperationRecord => OperationRecord.parse(item)

export const isOperationTerminal = ({ status }: OperationRecord): boolean =>
  status === 'Completed' || status === 'Failed'
