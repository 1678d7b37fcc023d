import awsLambdaFastify from '@fastify/aws-lambda'
import Fastify, { type FastifyRequest } from 'fastify'
import { readCluster } from './domain/cluster.ts'
import { type Submission, submitJob } from './domain/job.ts'
import { type Claims, claimsOf } from './domain/token.ts'

/** Both operations as users of Fastify write them: JSON schemas, a decorated request, a hook that authenticates. */

declare module 'fastify' {
  interface FastifyRequest {
    claims: Claims | null
  }
}

const submission = {
  type: 'object',
  required: ['clusterId', 'type', 'payload'],
  properties: {
    clusterId: { type: 'string', maxLength: 64 },
    type: { const: 'InvokeScript' },
    payload: {
      type: 'object',
      required: ['script'],
      properties: { script: { type: 'string', minLength: 1, maxLength: 65_536 } },
    },
  },
}

const app = Fastify()
app.decorateRequest('claims', null)
app.addHook('onRequest', async (request, reply) => {
  request.claims = (await claimsOf(request.headers.authorization)) ?? null
  if (request.claims === null) return reply.code(401).send({ error: 'refused' })
  return undefined
})

app.get<{ Params: { id: string } }>('/api/v1/clusters/:id', async (request, reply) => {
  const cluster = await readCluster(orgOf(request), request.params.id)
  return cluster ?? reply.code(404).send({ error: 'refused' })
})

app.post<{ Body: Submission }>('/api/v1/jobs', { schema: { body: submission } }, async (request, reply) => {
  if (request.claims === null) throw new Error('Nobody asks.')
  const job = await submitJob(request.claims, request.ip, request.body)
  return job === undefined ? reply.code(404).send({ error: 'refused' }) : reply.code(202).send(job)
})

const orgOf = ({ claims }: FastifyRequest): string => claims?.org ?? ''

export const handler = awsLambdaFastify(app)
