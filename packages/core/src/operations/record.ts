import * as z from 'zod'
import type { Item } from '../db/table.ts'
import { submitterFields } from '../submitter.ts'
import { jsonString } from '../lib/validate.ts'

/** Operations are listed and polled like other jobs but have no cluster. */

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

const JsonObject = z.record(z.string(), z.unknown())

export const OperationRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  type: z.enum(operationTypes),
  status: z.enum(['Queued', 'Running', 'Completed', 'Failed']),
  statusReason: z.enum(['module_operation_failed', 'update_failed']).optional(),
  createdAtMs: z.number(),
  ...submitterFields,
  startedAtMs: z.number().optional(),
  completedAtMs: z.number().optional(),
  payload: jsonString(JsonObject),
  plan: jsonString(JsonObject),
  steps: jsonString(z.array(StoredStep)),
  leaseHolder: z.string().optional(),
  leaseUntilMs: z.number().default(0),
  attempts: z.number().default(0),
  /** The final message for users. */
  outcome: z.string().optional(),
})
export type OperationRecord = z.infer<typeof OperationRecord>

export const isOperation = (item: Item): boolean => operationTypes.some((type) => type === item['type'])

export const parseOperation = (item: Item): OperationRecord => OperationRecord.parse(item)

export const isOperationTerminal = ({ status }: OperationRecord): boolean =>
  status === 'Completed' || status === 'Failed'
