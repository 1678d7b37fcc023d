import { unixText } from '@platform/contract/unix-text'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { isApiError } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { Card } from '../../ui/card.tsx'
import { useDraft } from '../../ui/draft.ts'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { showToast } from '../../ui/toast.tsx'
import { existingIds, knownName } from '../clusters/cluster-queries.ts'
import { jobQuery } from './job-queries.ts'
import styles from './jobs.module.css'
import { ScriptEditor } from './script-editor.tsx'
import { type Draft, submissionsOf } from './submission.ts'
import { NodePicker, TargetPicker } from './target-picker.tsx'

/** The form that runs a script. One cluster results in a job, several result in a batch. */
export const NewJobPage = () => (
  <RequirePermission permission="jobs:write" title="Run a script">
    <NewJob />
  </RequirePermission>
)

function NewJob() {
  const { clusterId, from } = useSearch({ from: '/signed-in/jobs/new' })
  const source = useQuery({ ...jobQuery(from ?? ''), enabled: from !== undefined })
  return (
    <Page title="Run a script" parent={{ label: 'Jobs', to: '/jobs' }}>
      {from === undefined && <JobForm draft={{ script: '', clusterIds: clusterId ? [clusterId] : [] }} />}
      {from !== undefined && (
        <Loaded query={source} what="the earlier job">
          {(job) => <JobForm key={job.id} draft={draftOf(job)} />}
        </Loaded>
      )}
    </Page>
  )
}

// "Run again" fills the form with the values of the earlier job.
function draftOf({ payload, clusterId }: Schemas['Job']): Draft {
  const { script, targetNodeIds, timeoutSeconds } = payload
  return {
    script: typeof script === 'string' ? script : '',
    clusterIds: clusterId === undefined ? [] : [clusterId],
    ...(Array.isArray(targetNodeIds) && { nodeIds: targetNodeIds.map(String) }),
    ...(typeof timeoutSeconds === 'number' && { timeoutSeconds }),
  }
}

function JobForm({ draft }: { draft: Draft }) {
  const [script, setScript] = useDraft('script', draft.script)
  const [clusterIds, setClusterIds] = useDraft('clusters', draft.clusterIds)
  const [nodeIds, setNodeIds] = useDraft('nodes', draft.nodeIds)
  const [isKept, setIsKept] = useState(false)
  const { text, found } = unixText(script)
  const submit = useSubmit()
  const isBatch = clusterIds.length > 1
  const choose = (ids: string[]) => {
    setClusterIds(ids)
    // The selected nodes belong to the previous cluster.
    setNodeIds(undefined)
  }
  return (
    <Form
      name="job"
      submitLabel={isBatch ? `Run on ${clusterIds.length} clusters` : 'Run job'}
      onSubmit={(values) => submit({ ...draft, script: isKept ? script : text, clusterIds, nodeIds }, values)}
    >
      <div className={styles['columns']}>
        <Card title={<span id="script-label">Script</span>}>
          <ScriptEditor initial={script} onChange={setScript} labelledBy="script-label" />
          <p className={styles['quiet']}>
            A first line such as <code>#!/usr/bin/env python3</code> sets the interpreter; the default is{' '}
            <code>sh</code>.
          </p>
          {found.length > 0 && (
            <div role="status">
              <p>
                The script has {found.join(' and ')}, which interpreters reject.
                {isKept ? ' It is submitted unchanged.' : ' The text is converted when you submit it.'}
              </p>
              <CheckField label="Submit the script unchanged" checked={isKept} onChange={setIsKept} />
            </div>
          )}
        </Card>
        <Card title="Targets">
          <TargetPicker chosen={clusterIds} onChange={choose} />
          {clusterIds.length === 1 && <NodePicker clusterId={clusterIds[0]!} chosen={nodeIds} onChange={setNodeIds} />}
          <TextField name="name" label="Name" maxLength={100} placeholder="Rotate logs" isOptional />
          <TextField name="reason" label="Reason" maxLength={500} placeholder="Ticket 4711" isOptional />
          <JobLimits timeoutSeconds={draft.timeoutSeconds} />
          {isBatch && <BatchLimits />}
        </Card>
      </div>
    </Form>
  )
}

function useSubmit() {
  const navigate = useNavigate()
  return async (draft: Draft, values: FormValues): Promise<void> => {
    const { jobs, limits, purpose } = submissionsOf(draft, values)
    const [only] = jobs
    if (jobs.length === 1 && only !== undefined) {
      const { id } = await unwrap(api.POST('/api/v1/jobs', { body: { ...only, ...purpose } }))
      showToast('Job submitted')
      await navigate({ to: '/jobs/$jobId', params: { jobId: id } })
    } else {
      const { batchId, submittedCount } = await submitBatch({ jobs, ...purpose, ...limits })
      showToast(`${submittedCount} jobs submitted`)
      await navigate({ to: '/jobs/batches/$batchId', params: { batchId } })
    }
    await Promise.all(['jobs', 'batches'].map((noun) => queries.invalidateQueries({ queryKey: [noun] })))
  }
}

/** Skips clusters that were removed since they were selected, and shows their names. */
async function submitBatch(
  body: Schemas['BatchSubmission'] & { jobs: Schemas['BatchJob'][] },
): Promise<Schemas['AcceptedBatch']> {
  try {
    return await unwrap(api.POST('/api/v1/jobs/batch', { body }))
  } catch (error) {
    if (!isApiError(error, 'cluster_forbidden')) throw error
    const existing = await existingIds(body.jobs.map(({ clusterId }) => clusterId))
    const jobs = body.jobs.filter(({ clusterId }) => existing.has(clusterId))
    if (jobs.length === 0 || jobs.length === body.jobs.length) throw error
    const removed = body.jobs.filter((job) => !jobs.includes(job))
    showToast('Removed clusters were skipped', removed.map(({ clusterId }) => knownName(clusterId)).join(', '))
    return submitBatch({ ...body, jobs })
  }
}

const number = { type: 'number', inputMode: 'numeric', min: 1, step: 1 } as const

export const JobLimits = ({ timeoutSeconds }: { timeoutSeconds: number | undefined }) => (
  <>
    <TextField
      {...number}
      name="timeoutMinutes"
      label="Execution timeout (minutes)"
      max={2880}
      defaultValue={timeoutSeconds === undefined ? '' : String(Math.ceil(timeoutSeconds / 60))}
      placeholder="60"
      isOptional
    />
    <TextField
      {...number}
      name="deliverWithinMinutes"
      label="Delivery timeout (minutes)"
      max={43_200}
      placeholder="60"
      hint="The job fails if its relay does not pick it up in time."
      isOptional
    />
  </>
)

export const BatchLimits = () => (
  <>
    <TextField
      {...number}
      name="maxConcurrency"
      label="Maximum concurrent jobs"
      max={500}
      placeholder="all"
      isOptional
    />
    <TextField
      {...number}
      name="maxErrors"
      min={0}
      label="Stop after this many failures"
      max={500}
      placeholder="never"
      hint="Queued jobs are then cancelled."
      isOptional
    />
  </>
)
