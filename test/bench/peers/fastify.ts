import awsLambdaFastify from '@fastify/aws-lambda'
import Fastify from 'fastify'
import { type Claims, readCluster, type Submission, submitJob, verifyToken } from './domain.ts'

declare module 'fastify' {
  interface FastifyRequest {
    claims: Claims
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
app.decorateRequest('claims')
app.addHook('onRequest', async (request, reply) => {
  const claims = await verifyToken(request.headers.authorization)
  if (claims === undefined) return reply.code(401).send({ error: 'rejected' })
  request.claims = claims
  return undefined
})

app.get<{ Params: { id: string } }>('/api/v1/clusters/:id', async ({ claims, params }, reply) => {
  const cluster = await readCluster(claims.org, params.id)
  return cluster ?? reply.code(404).send({ error: 'rejected' })
})

app.post<{ Body: Submission }>('/api/v1/jobs', { schema: { body: submission } }, async (request, reply) => {
  const job = await submitJob(request.claims, request.ip, request.body)
  return job === undefined ? reply.code(404).send({ error: 'rejected' }) : reply.code(202).send(job)
})

export const handler = awsLambdaFastify(app)
