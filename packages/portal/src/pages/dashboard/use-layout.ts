import { queryOptions, useIsMutating, useMutation, useQuery } from '@tanstack/react-query'
import { api, expectNoBody, type Schemas } from '../../api/client.ts'
import { isApiError } from '../../api/api-error.ts'
import { queries } from '../../api/query.ts'
import { showErrorToast, showToast } from '../../ui/toast.tsx'

type Stored = Schemas['WidgetPlacement'][]

/** The shown layout, the stored layout and its entity tag. They are undefined if no layout was ever stored. */
interface CachedLayout {
  layout: Stored | undefined
  saved: Stored | undefined
  etag: string | undefined
  /** Number of changes since the layout was read. */
  changeCount: number
}

const layoutQuery = queryOptions({
  queryKey: ['dashboard-layout'],
  queryFn: async (): Promise<CachedLayout> => {
    let etag: string | undefined
    const call = api.GET('/api/v1/users/me/dashboard-layout').then((result) => {
      etag = result.response.headers.get('etag') ?? undefined
      return result
    })
    const layout = (await expectNoBody(call))?.layout
    return { layout, saved: layout, etag, changeCount: 0 }
  },
})

const mutationKey = ['save-dashboard-layout']

const cachedLayout = (): CachedLayout | undefined => queries.getQueryData(layoutQuery.queryKey)
const updateCache = (changes: Partial<CachedLayout>): void => {
  queries.setQueryData(layoutQuery.queryKey, (before) => before && { ...before, ...changes })
}

// Saves a change unless a newer one follows. `If-Match` prevents overwriting changes from another tab.
async function save(change: number): Promise<void> {
  const cached = cachedLayout()
  if (cached?.layout === undefined || cached.changeCount !== change) return
  const { layout } = cached
  const header = cached.etag === undefined ? {} : { 'if-match': cached.etag }
  const call = api.PATCH('/api/v1/users/me/dashboard-layout', { params: { header }, body: { layout } })
  try {
    await expectNoBody(call)
    const { response } = await call
    updateCache({ saved: layout, etag: response.headers.get('etag') ?? undefined })
  } catch (error) {
    if (isApiError(error, 'precondition_failed')) {
      await queries.refetchQueries(layoutQuery)
      showToast(
        'The dashboard was changed in another tab',
        'The other layout is shown; your last change was not saved.',
      )
      return
    }
    // A newer change will be saved, so this error needs no message.
    if (cachedLayout()?.changeCount !== change) return
    updateCache({ layout: cached.saved })
    showErrorToast('Failed to save the layout', error)
  }
}

/**
 * Reads and changes the layout of the dashboard. Changes are shown immediately and saved one after another. While a
 * save runs, only the newest change is queued.
 */
export function useLayout() {
  const isSaving = useIsMutating({ mutationKey }) > 0
  const { mutate } = useMutation({ mutationKey, mutationFn: save, scope: { id: 'dashboard-layout' } })
  // A refetch during a save would replace the shown layout with an older one.
  const query = useQuery({
    ...layoutQuery,
    refetchOnMount: !isSaving,
    refetchOnWindowFocus: !isSaving,
    refetchOnReconnect: !isSaving,
  })
  const change = (layout: Stored) => {
    void queries.cancelQueries(layoutQuery)
    const changeCount = (cachedLayout()?.changeCount ?? 0) + 1
    updateCache({ layout, changeCount })
    mutate(changeCount)
  }
  return { query, change, isSaving }
}
