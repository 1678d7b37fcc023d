import express, { type NextFunction, type Request, type Response } from 'express'
import serverless from 'serverless-http'
import { type Claims, readCluster, Submission, submitJob, verifyToken } from './domain.ts'

// oxlint-disable oxc/no-async-endpoint-handlers -- Express 5 awaits them

const app = express()
app.use(express.json())
app.use(async (request: Request, response: Response<unknown, { claims: Claims }>, next: NextFunction) => {
  const claims = await verifyToken(request.headers.authorization)
  if (claims === undefined) return void response.status(401).json({ error: 'rejected' })
  response.locals.claims = claims
  next()
})

app.get('/api/v1/clusters/:id', async (request, response) => {
  const cluster = await readCluster(response.locals['claims'].org, request.params.id)
  if (cluster === undefined) response.status(404).json({ error: 'rejected' })
  else response.json(cluster)
})

app.post('/api/v1/jobs', async (request, response) => {
  const { success, data } = Submission.safeParse(request.body)
  if (!success) return void response.status(400).json({ error: 'rejected' })
  const job = await submitJob(response.locals['claims'], request.ip ?? '', data)
  if (job === undefined) response.status(404).json({ error: 'rejected' })
  else response.status(202).json(job)
})

export const handler = serverless(app)
