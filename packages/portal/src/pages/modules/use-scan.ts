import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { showToast, showErrorToast } from '../../ui/toast.tsx'
import { catalogQuery } from './use-modules.ts'

/** Each registry may take a minute to respond. */
const patienceMs = 180_000

/** Starts a scan and polls the catalog until it has finished. */
export function useScan(): { isScanning: boolean; scan: () => void } {
  /** The time of the last scan before the requested one. */
  const [wish, setWish] = useState<{ before: string | undefined }>()
  const { data } = useQuery(catalogQuery)
  // The shown catalog may be older than the previous scan.
  const isScanning = wish !== undefined && (data?.scannedAt ?? '') <= (wish.before ?? '')
  useQuery({ ...catalogQuery, ...(isScanning && { refetchInterval: pollEvery(1) }) })
  const isDone = wish !== undefined && !isScanning
  const count = data?.totalCount ?? 0

  useEffect(() => {
    if (isDone) showToast('The catalog is up to date', `${count} ${count === 1 ? 'module' : 'modules'}.`)
    // Shows the toast once per scan, even if the count changes later.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [isDone])

  useEffect(() => {
    if (!isScanning) return undefined
    const timer = setTimeout(() => {
      setWish(undefined)
      showToast('The scan is taking longer than expected', 'The catalog updates when it completes.')
    }, patienceMs)
    return () => clearTimeout(timer)
  }, [isScanning])

  const scan = () =>
    void unwrap(api.POST('/api/v1/modules/catalog/scan')).then(
      ({ scannedAt }) => setWish({ before: scannedAt }),
      (error: unknown) => showErrorToast('Failed to start the scan', error),
    )
  return { isScanning, scan }
}
