import { useEffect, useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { backOffMs } from '../../api/query.ts'
import { outputReader, type Part, retain } from './output.ts'

export interface LiveOutput {
  parts: readonly Part[]
  isFinished: boolean
  /** The current error. The request is retried. */
  failure: unknown
}

const emptyOutput: LiveOutput = { parts: [], isFinished: false, failure: undefined }
const shortestPauseMs = 500
const longestPauseMs = 5000

/** Polls the output of a job. The output is kept, so remount the component for another job. */
export function useOutput(jobId: string): LiveOutput {
  const [output, setOutput] = useState(emptyOutput)
  useEffect(() => {
    const controller = new AbortController()
    void followOutput(jobId, controller.signal, (change) => setOutput((before) => ({ ...before, ...change(before) })))
    return () => controller.abort()
  }, [jobId])
  return output
}

type Change = (before: LiveOutput) => Partial<LiveOutput>

async function followOutput(jobId: string, signal: AbortSignal, onChange: (change: Change) => void): Promise<void> {
  const read = outputReader()
  let offset = 0
  let failureCount = 0
  let pauseMs = shortestPauseMs
  while (!signal.aborted) {
    try {
      await untilVisible(signal)
      const page = await unwrap(
        api.GET('/api/v1/jobs/{id}/output', {
          params: { path: { id: jobId }, query: { offset } },
          signal,
        }),
      )
      if (signal.aborted) return
      failureCount = 0
      offset = page.nextOffset
      const newParts = read(page.items)
      onChange(({ parts }) => ({
        parts: newParts.length > 0 ? retain([...parts, ...newParts]) : parts,
        isFinished: page.finished,
        failure: undefined,
      }))
      if (page.finished) return
      // The pause grows while the job is silent.
      pauseMs = newParts.length > 0 ? shortestPauseMs : Math.min(longestPauseMs, pauseMs * 1.5)
      await pause(pauseMs, signal)
    } catch (failure) {
      if (signal.aborted) return
      failureCount += 1
      onChange(() => ({ failure }))
      await pause(backOffMs(failureCount, failure), signal)
    }
  }
}

// Hidden tabs should not cause requests.
async function untilVisible(signal: AbortSignal): Promise<void> {
  while (document.hidden && !signal.aborted) await waitForEvent(document, 'visibilitychange', signal)
}

const waitForEvent = (target: EventTarget, name: string, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      target.removeEventListener(name, end)
      signal.removeEventListener('abort', end)
      resolve()
    }
    target.addEventListener(name, end)
    signal.addEventListener('abort', end)
  })

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
