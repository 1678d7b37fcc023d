import { unixText } from '@platform/contract/unix-text'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useLocation, useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { configurationQuery } from '../../api/account.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { discardChanges, discardLater, useDraft } from '../../ui/draft.ts'
import { ErrorNote } from '../../ui/error-note.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { showToast } from '../../ui/toast.tsx'
import { maxPerRequest, type Target } from '../clusters/label-queries.ts'
import { Review } from '../clusters/review.tsx'
import { clusterCountText } from '../clusters/selector-completions.ts'
import { completeTarget, noTarget, type TargetInput, useTarget } from '../clusters/target.ts'
import { NodePicker, TargetPicker } from '../clusters/target-picker.tsx'
import { ExampleLinks, exampleScript } from './examples.tsx'
import { jobQuery } from './job-queries.ts'
import styles from './jobs.module.css'
import { ScriptEditor } from './script-editor.tsx'
import { type Draft, requestOf, submitBatches } from './submission.ts'

/** The form that runs a script. A single selected cluster results in a job, any other target in one or more batches. */
export const NewJobPage = () => (
  <RequirePermission permission="jobs:write" title="Run a script">
    <NewJob />
  </RequirePermission>
)

function NewJob() {
  const { clusterId, from, selector, all, example } = useSearch({ from: '/signed-in/jobs/new' })
  const { isDemo = false } = useSuspenseQuery(configurationQuery).data
  const selectedIds = useLocation({ select: ({ state }) => state.clusterIds })
  const source = useQuery({ ...jobQuery(from ?? ''), enabled: from !== undefined })
  const [clearCount, setClearCount] = useState(0)
  const clear = () => {
    discardChanges()
    setClearCount(clearCount + 1)
  }
  return (
    <Page title="Run a script" parent={{ label: 'Jobs', to: '/jobs' }}>
      {from === undefined && (
        <>
          {isDemo && <ExampleLinks />}
          <JobForm
            key={`${example} ${clearCount}`}
            {...(example !== undefined && { from: example, isExample: isDemo })}
            draft={{ script: exampleScript(example) }}
            target={targetFrom({ clusterId, selector, isAll: all ?? false, selected: selectedIds })}
            onClear={clear}
          />
        </>
      )}
      {from !== undefined && (
        <Loaded query={source} what="the earlier job">
          {(job) => (
            <JobForm
              key={`${job.id} ${clearCount}`}
              from={job.id}
              draft={draftOf(job)}
              target={targetFrom({ clusterId: job.clusterId })}
              onClear={clear}
            />
          )}
        </Loaded>
      )}
    </Page>
  )
}

interface TargetSource {
  clusterId?: string | undefined
  selector?: string | undefined
  isAll?: boolean
  /** The clusters that were selected in the list. */
  selected?: string[] | undefined
}

function targetFrom({ clusterId, selector, isAll = false, selected }: TargetSource): TargetInput {
  if (selector !== undefined) return { ...noTarget, kind: 'selector', selector }
  if (isAll) return { ...noTarget, kind: 'all' }
  return { ...noTarget, clusterIds: selected ?? (clusterId === undefined ? [] : [clusterId]) }
}

// "Run again" fills the form with the values of the earlier job.
function draftOf({ payload }: Schemas['Job']): Draft {
  const { script, targetNodeIds, timeoutSeconds } = payload
  return {
    script: typeof script === 'string' ? script : '',
    ...(Array.isArray(targetNodeIds) && { nodeIds: targetNodeIds.map(String) }),
    ...(typeof timeoutSeconds === 'number' && { timeoutSeconds }),
  }
}

interface JobFormProps {
  /** Id of the earlier job, or name of the example, that provides the initial values. */
  from?: string
  draft: Draft
  target: TargetInput
  /** Examples of a demo change nothing, so they run without a review. */
  isExample?: boolean
  onClear: () => void
}

function JobForm({ from = '', draft, target: initialTarget, isExample = false, onClear }: JobFormProps) {
  // The key of the script does not contain the target, so the script is kept when the user selects clusters on another
  // page.
  const source = JSON.stringify(initialTarget)
  const [script, setScript] = useDraft(`script ${from}`, draft.script, { isKept: true })
  const [target, setTarget] = useDraft(`target ${source}`, initialTarget, { isKept: true })
  const [nodeIds, setNodeIds] = useDraft(`nodes ${source}`, draft.nodeIds, { isKept: true })
  const [isKept, setIsKept] = useState(false)
  const { text, corrections } = unixText(script)
  const { resolved, count } = useTarget(target)
  const onlyId = target.kind === 'picked' && count === 1 ? target.clusterIds[0] : undefined
  const isBatch = onlyId === undefined && count !== 0
  const canSkipReview = isExample && script === draft.script && target.kind === 'all'
  const [reviewed, setReviewed] = useState<{ target: Target; values: FormValues }>()
  const { submit, progress } = useSubmit((clusterIds) => {
    setTarget({ ...noTarget, clusterIds })
    setReviewed((review) => review && { ...review, target: { clusterIds } })
  })
  const draftNow = { ...draft, script: isKept ? script : text, nodeIds }
  const choose = (nextTarget: TargetInput) => {
    setTarget(nextTarget)
    // The selected nodes belong to the previous cluster.
    setNodeIds(undefined)
  }
  // A single selected cluster is visible in the form. Other targets are reviewed first, except for unchanged examples.
  const start = async (values: FormValues) => {
    requestOf(draftNow, values)
    const complete = completeTarget(target, count)
    if (onlyId !== undefined || canSkipReview) return submit(draftNow, values, { onlyId, ...complete })
    setReviewed({ target: complete.target, values })
    return false
  }
  return (
    <>
      {reviewed !== undefined && (
        <Review
          target={reviewed.target}
          verb="Run on"
          awayNote="Jobs of clusters that are not online wait for the relay until the delivery timeout."
          onClose={() => setReviewed(undefined)}
          onConfirm={async ({ target: checkedTarget, count: checkedCount }) => {
            const discard = discardLater()
            await submit(draftNow, reviewed.values, { onlyId: undefined, target: checkedTarget, count: checkedCount })
            discard()
          }}
        >
          {progress !== undefined && <div role="status">{progress}</div>}
        </Review>
      )}
      <Form
        name={`job ${from}`}
        hasDraft="kept"
        actions={
          <Button variant="quiet" onClick={onClear}>
            Clear form
          </Button>
        }
        submitLabel={
          isBatch && count !== undefined
            ? `${canSkipReview ? 'Run on' : 'Review'} ${clusterCountText(count)}`
            : 'Run job'
        }
        onSubmit={start}
      >
        <div className={styles['columns']}>
          <Card title={<span id="script-label">Script</span>}>
            <ScriptEditor initial={script} onChange={setScript} labelledBy="script-label" />
            <p className={styles['quiet']}>
              A first line such as <code>#!/usr/bin/env python3</code> sets the interpreter; the default is{' '}
              <code>sh</code>. <kbd>Ctrl</kbd>+<kbd>Enter</kbd> submits the form.
            </p>
            {corrections.length > 0 && (
              <div role="status">
                <p>
                  The script has {corrections.join(' and ')}, which interpreters reject.
                  {isKept ? ' It is submitted unchanged.' : ' The text is converted when you submit it.'}
                </p>
                <CheckField label="Submit the script unchanged" checked={isKept} onChange={setIsKept} />
              </div>
            )}
          </Card>
          <Card title="Targets">
            <TargetPicker input={target} onChange={choose} resolved={resolved} />
            {onlyId !== undefined && <NodePicker clusterId={onlyId} chosen={nodeIds} onChange={setNodeIds} />}
            {progress !== undefined && reviewed === undefined && <div role="status">{progress}</div>}
            <TextField name="name" label="Name" maxLength={100} placeholder="Rotate logs" isOptional />
            <TextField name="reason" label="Reason" maxLength={500} placeholder="Ticket 4711" isOptional />
            <JobLimits timeoutSeconds={draft.timeoutSeconds} />
            {isBatch && <BatchLimits count={count ?? 0} />}
          </Card>
        </div>
      </Form>
    </>
  )
}

interface SubmittedTarget {
  target: Target
  count: number
  /** The only selected cluster, which gets a job without a batch. */
  onlyId: string | undefined
}

/** Submits the form. If a batch after the first cannot be submitted, `onRest` is called with the remaining clusters. */
function useSubmit(onRest: (clusterIds: string[]) => void) {
  const navigate = useNavigate()
  const [submittedBatchIds, setSubmittedBatchIds] = useState<string[]>([])
  const [progress, setProgress] = useState<ReactNode>()
  const submitMany = async ({ job, limits }: ReturnType<typeof requestOf>, target: SubmittedTarget) => {
    let rest: string[] | undefined
    let newBatchIds: readonly string[] = []
    try {
      newBatchIds = await submitBatches({ ...job, ...limits }, target, (nextProgress) => {
        newBatchIds = nextProgress.batchIds
        rest = nextProgress.rest
        setProgress(
          `${(target.count - rest.length).toLocaleString('en')} of ${clusterCountText(target.count)} submitted.`,
        )
      })
      return [...submittedBatchIds, ...newBatchIds]
    } catch (error) {
      if (rest === undefined) throw error
      setSubmittedBatchIds([...submittedBatchIds, ...newBatchIds])
      const batches = newBatchIds.length === 1 ? '1 batch was' : `${newBatchIds.length} batches were`
      setProgress(
        <>
          {batches} submitted. The other clusters are selected. Submit again to continue.
          <ErrorNote error={error} />
        </>,
      )
      onRest(rest)
      throw error
    }
  }
  const submit = async (draft: Draft, values: FormValues, target: SubmittedTarget): Promise<void> => {
    const request = requestOf(draft, values)
    if (target.onlyId !== undefined && submittedBatchIds.length === 0) {
      const body = { clusterId: target.onlyId, ...request.job }
      const { id } = await unwrap(api.POST('/api/v1/jobs', { body }))
      showToast('Job submitted')
      await navigate({ to: '/jobs/$jobId', params: { jobId: id } })
    } else {
      const [batchId = '', ...others] = await submitMany(request, target)
      showToast(others.length === 0 ? 'Batch submitted' : `${others.length + 1} batches submitted`)
      const search = others.length === 0 ? {} : { with: others.join(',') }
      await navigate({ to: '/jobs/batches/$batchId', params: { batchId }, search })
    }
    await Promise.all(['jobs', 'batches'].map((noun) => queries.invalidateQueries({ queryKey: [noun] })))
  }
  return { submit, progress }
}

const numberInput = { type: 'number', inputMode: 'numeric', min: 1, step: 1 } as const

const JobLimits = ({ timeoutSeconds }: { timeoutSeconds: number | undefined }) => (
  <>
    <TextField
      {...numberInput}
      name="timeoutMinutes"
      label="Execution timeout (minutes)"
      max={2880}
      defaultValue={timeoutSeconds === undefined ? '' : String(Math.ceil(timeoutSeconds / 60))}
      placeholder="60"
      isOptional
    />
    <TextField
      {...numberInput}
      name="deliverWithinMinutes"
      label="Delivery timeout (minutes)"
      max={43_200}
      placeholder="60"
      hint="The job fails if its relay does not pick it up in time."
      isOptional
    />
  </>
)

const BatchLimits = ({ count }: { count: number }) => (
  <>
    {count > maxPerRequest && (
      <p className={styles['quiet']}>
        Each {maxPerRequest} clusters are one batch. The limits apply to each batch; the results are shown together.
      </p>
    )}
    <TextField
      {...numberInput}
      name="maxConcurrency"
      label="Maximum concurrent jobs"
      max={500}
      placeholder="all"
      isOptional
    />
    <TextField
      {...numberInput}
      name="maxErrors"
      min={0}
      label="Maximum failed jobs"
      max={500}
      placeholder="all"
      hint="If more jobs fail, queued jobs are cancelled."
      isOptional
    />
  </>
)
