import * as z from 'zod'
import { createRoute, json } from './endpoint.ts'
import { timestamp } from './common.ts'

export const HealthStatus = z.object({ status: z.enum(['ok', 'unavailable']) }).meta({ id: 'HealthStatus' })

/** Result of one health check of the platform or of a module. */
export const HealthCheck = z
  .object({
    name: z.string().max(100).meta({ example: 'table' }),
    status: z.enum(['Healthy', 'Degraded', 'Unhealthy']),
    tags: z.array(z.enum(['informational', 'degradable', 'critical'])).max(3),
    source: z.string().max(100).meta({ description: '`platform`, or `module:<id>`', example: 'platform' }),
    durationMs: z.number().min(0).meta({ format: 'double', example: 4.2 }),
    checkedAt: timestamp,
    description: z.string().max(500).meta({ example: 'The store is available.' }),
  })
  .meta({ id: 'HealthCheck' })

/** The body of `GET /health/ready`: all checks and their aggregate. */
export const Readiness = HealthStatus.extend({
  aggregate: z.enum(['Healthy', 'Degraded', 'Unhealthy']),
  checks: z.array(HealthCheck).max(1000),
}).meta({ id: 'Readiness' })

export type Readiness = z.infer<typeof Readiness>
export type HealthCheck = z.infer<typeof HealthCheck>

export const live = createRoute({
  method: 'get',
  path: '/health/live',
  access: 'public',
  tags: ['Health'],
  summary: 'The process is running',
  description: 'Does not check the database.',
  responses: { 200: { description: 'Running', content: json(HealthStatus) } },
})

export const ready = createRoute({
  method: 'get',
  path: '/health/ready',
  access: 'public',
  tags: ['Health'],
  summary: 'The platform can serve',
  description: 'Database connected and migrated. Returns 503 with the same body if a critical check fails.',
  responses: {
    200: { description: 'Ready', content: json(Readiness) },
    503: { description: 'Not ready', content: json(Readiness) },
  },
  capabilities: ['table:read'],
})

export const startup = createRoute({
  method: 'get',
  path: '/health/startup',
  access: 'public',
  tags: ['Health'],
  summary: 'Initialization is complete',
  responses: {
    200: { description: 'Started', content: json(HealthStatus) },
    503: { description: 'Still starting', content: json(HealthStatus) },
  },
  capabilities: ['table:read'],
})
