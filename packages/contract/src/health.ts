import * as z from 'zod'
import { endpoint } from './endpoint.ts'
import { timestamp } from './common.ts'

/** Section 2: `ok` on success. */
export const HealthStatus = z.object({ status: z.enum(['ok', 'unavailable']) }).meta({ id: 'HealthStatus' })

/** One named check of the platform or of a module (D36). */
export const HealthCheck = z
  .object({
    name: z.string().max(100).meta({ example: 'table' }),
    status: z.enum(['Healthy', 'Degraded', 'Unhealthy']),
    tags: z.array(z.enum(['informational', 'degradable', 'critical'])).max(3),
    source: z.string().max(100).meta({ description: '`platform`, or `module:<id>`', example: 'platform' }),
    durationMs: z.number().min(0).meta({ example: 4.2 }),
    checkedAt: timestamp,
    description: z.string().max(500).meta({ example: 'The store answers.' }),
  })
  .meta({ id: 'HealthCheck' })

/** The aggregated body of `GET /health/ready` (D36). */
export const Readiness = HealthStatus.extend({
  aggregate: z.enum(['Healthy', 'Degraded', 'Unhealthy']),
  checks: z.array(HealthCheck).max(1000),
}).meta({ id: 'Readiness' })

export type Readiness = z.infer<typeof Readiness>
export type HealthCheck = z.infer<typeof HealthCheck>

export const live = endpoint({
  method: 'GET',
  path: '/health/live',
  access: 'public',
  tag: 'Health',
  summary: 'The process is running',
  description: 'Does not look at the database.',
  responses: { 200: { description: 'Running', schema: HealthStatus } },
})

export const ready = endpoint({
  method: 'GET',
  path: '/health/ready',
  access: 'public',
  tag: 'Health',
  summary: 'The platform can serve',
  description: 'Database connected and migrated. A failing critical check answers 503 with the same body.',
  responses: {
    200: { description: 'Ready', schema: Readiness },
    503: { description: 'Not ready', schema: Readiness },
  },
  uses: ['table:read'],
})

export const startup = endpoint({
  method: 'GET',
  path: '/health/startup',
  access: 'public',
  tag: 'Health',
  summary: 'Initialization is done',
  responses: {
    200: { description: 'Started', schema: HealthStatus },
    503: { description: 'Still starting', schema: HealthStatus },
  },
  uses: ['table:read'],
})
