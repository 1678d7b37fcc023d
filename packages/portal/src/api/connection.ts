import { useSyncExternalStore } from 'react'

// This file tracks whether the platform responds. A failed or slow request causes a probe, which decides whether the
// connection is lost. While it is lost, the probe is repeated. When it is restored, pending reads are aborted, so that
// their queries retry them.

const slowMs = 1200
const probeTimeoutMs = 750
const probeEveryMs = 2000

let isLost = false
let lastResponseMs = 0
let currentProbe: Promise<void> | undefined
let probeTimer: ReturnType<typeof setTimeout> | undefined
const pendingReads = new Set<AbortController>()
const listeners = new Set<() => void>()

function setLost(isNowLost: boolean): void {
  clearTimeout(probeTimer)
  if (isNowLost) probeTimer = setTimeout(() => void probe(), probeEveryMs)
  if (isLost === isNowLost) return
  isLost = isNowLost
  // Otherwise, pending reads would wait until the timeout of the browser.
  if (!isNowLost) for (const read of pendingReads) read.abort()
  for (const listener of listeners) listener()
}

function probe(): Promise<void> {
  currentProbe ??= (async () => {
    const isHidden = document.hidden && isLost
    const call = isHidden ? undefined : readToEnd(fetch('/health/live', probeOptions()))
    const response = await call?.catch(() => undefined)
    currentProbe = undefined
    setLost(!response?.ok)
  })()
  return currentProbe
}

const probeOptions = (): RequestInit => ({ cache: 'no-store', signal: AbortSignal.timeout(probeTimeoutMs) })

/** Returns the response with its content. An unread response would keep its connection busy. */
export async function readToEnd(call: Promise<Response>): Promise<Response> {
  const response = await call
  return new Response(await response.text(), response)
}

/** Like `fetch`, but updates the state of the connection. */
export async function fetchTracked(request: Request): Promise<Response> {
  const controller = new AbortController()
  const startedMs = Date.now()
  const timer = setTimeout(() => lastResponseMs < startedMs && void probe(), slowMs)
  const isRead = request.method === 'GET'
  if (isRead) pendingReads.add(controller)
  const signal = AbortSignal.any([request.signal, controller.signal])
  try {
    const response = await fetch(isRead ? new Request(request, { signal }) : request)
    lastResponseMs = Date.now()
    // This read is removed before `setLost`, which would abort the body of the response.
    pendingReads.delete(controller)
    if (isLost && response.status < 500) setLost(false)
    return response
  } catch (error) {
    if (!signal.aborted) await probe()
    throw error
  } finally {
    clearTimeout(timer)
    pendingReads.delete(controller)
  }
}

const onBrowserChange = (): void => void probe()

function subscribe(listener: () => void): () => void {
  for (const name of ['offline', 'online']) addEventListener(name, onBrowserChange)
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useIsLost = (): boolean => useSyncExternalStore(subscribe, () => isLost)
