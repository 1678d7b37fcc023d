import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { showToast, showErrorToast } from '../../ui/toast.tsx'
import { catalogQuery } from './use-modules.ts'

/** A registry has a minute to answer, and there may be some of them. */
const patienceMs = 180_000

/** Has the platform look for modules, and follows the catalog until it has. */
export function useScan(): { isScanning: boolean; scan: () => void } {
  /** When the sources were looked at before, once there was a wish for another look. */
  const [wish, setWish] = useState<{ before: string | undefined }>()
  const { data } = useQuery(catalogQuery)
  // What is shown may be of a look before the one that came before the wish.
  const isScanning = wish !== undefined && (data?.scannedAt ?? '') <= (wish.before ?? '')
  useQuery({ ...catalogQuery, ...(isScanning && { refetchInterval: pollEvery(1) }) })
  const isDone = wish !== undefined && !isScanning
  const count = data?.totalCount ?? 0

  useEffect(() => {
    if (isDone) showToast('The catalog is up to date', `It holds ${count} ${count === 1 ? 'module' : 'modules'}.`)
    // Told once a look, however the number changes afterwards.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [isDone])

  useEffect(() => {
    if (!isScanning) return undefined
    const timer = setTimeout(() => {
      setWish(undefined)
      showToast('The sources take long to answer', 'The catalog shows what is found when they have.')
    }, patienceMs)
    return () => clearTimeout(timer)
  }, [isScanning])

  const scan = () =>
    void unwrap(api.POST('/api/v1/modules/catalog/scan')).then(
      ({ scannedAt }) => setWish({ before: scannedAt }),
      (error: unknown) => showErrorToast('The platform did not begin to look', error),
    )
  return { isScanning, scan }
}
