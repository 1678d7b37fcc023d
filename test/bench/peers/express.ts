import express, { type NextFunction, type Request, type Response } from 'express'
import serverless from 'serverless-http'
import { readCluster } from './domain/cluster.ts'
import { Submission, submitJob } from './domain/job.ts'
import { type Claims, claimsOf } from './domain/token.ts'

/** Both operations as users of Express write them: middleware that parses and authenticates, and zod. */

// oxlint-disable oxc/no-async-endpoint-handlers -- Express 5 waits for them

const app = express()
app.use(express.json())
app.use(async (request: Request, response: Response<unknown, { claims: Claims }>, next: NextFunction) => {
  const claims = await claimsOf(request.headers.authorization)
  if (claims === undefined) {
    response.status(401).json({ error: 'refused' })
  } else {
    response.locals.claims = claims
    next()
  }
})

app.get('/api/v1/clusters/:id', async (request, response) => {
  const cluster = await readCluster(response.locals['claims'].org, request.params.id)
  if (cluster === undefined) response.status(404).json({ error: 'refused' })
  else response.json(cluster)
})

app.post('/api/v1/jobs', async (request, response) => {
  const { success, data } = Submission.safeParse(request.body)
  if (success) {
    const job = await submitJob(response.locals['claims'], request.ip ?? '', data)
    if (job === undefined) response.status(404).json({ error: 'refused' })
    else response.status(202).json(job)
  } else {
    response.status(400).json({ error: 'refused' })
  }
})

export const handler = serverless(app)
