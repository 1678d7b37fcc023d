import { useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Check, LayoutDashboard, PencilRuler } from 'lucide-react'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { configurationQuery, useSummary } from '../../api/account.ts'
import { Button } from '../../ui/button.tsx'
import { useLazyPart } from '../../ui/hooks.ts'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import styles from './dashboard.module.css'
import { useDashboard } from './use-dashboard.ts'
import { WidgetGrid } from './widget-grid.tsx'
import { type Range, rangeList, rangeNames, useRange } from './widgets/history-charts.tsx'

const loadEditing = () => import('./editing.tsx')

// If the list of first steps cannot be loaded, the page is shown without the list.
const fallbackModule = { default: ({ otherwise }: { otherwise?: ReactNode }) => otherwise }
const GettingStarted = lazy(() =>
  import('./getting-started.tsx').then(
    (part) => ({ default: part.GettingStarted }),
    () => fallbackModule,
  ),
)
/** The first steps are shown until an organisation has this many jobs. */
const establishedJobCount = 5

export function DashboardPage() {
  const [isEditRequested, setIsEditRequested] = useState(false)
  const [editing, fetchEditing] = useLazyPart(loadEditing, 'Failed to open the dashboard editor')
  const isEditing = isEditRequested && editing !== undefined
  const beginEditing = () => {
    setIsEditRequested(true)
    fetchEditing()
  }
  const dashboard = useDashboard()
  const { clusters, jobs } = useSummary().data ?? {}
  const { isDemo = false } = useSuspenseQuery(configurationQuery).data
  const isNew = isDemo || (jobs !== undefined && jobs.total < establishedJobCount)
  const isUnused = clusters?.total === 0 && jobs?.total === 0 && dashboard.query.data?.layout === undefined
  const grid = <WidgetGrid placements={dashboard.placements} />
  const edit = (
    <Button icon={isEditing ? Check : PencilRuler} onClick={isEditing ? () => setIsEditRequested(false) : beginEditing}>
      {isEditing ? 'Done' : 'Edit dashboard'}
    </Button>
  )
  const hasRange = dashboard.placements.some(({ widget }) => rangeWidgets.has(widget.id))
  return (
    <Page
      title="Dashboard"
      actions={
        <>
          {hasRange && <RangeChoice />}
          {edit}
        </>
      }
    >
      {!isEditing && isNew && !isUnused && (
        <Suspense>
          <GettingStarted />
        </Suspense>
      )}
      <Loaded query={dashboard.query} what="the dashboard">
        {() => {
          if (isEditing) return <editing.Editing dashboard={dashboard} />
          const content = dashboard.placements.length > 0 ? grid : <EmptyDashboard onEdit={beginEditing} />
          if (!isUnused) return content
          // Without clusters and jobs, the widgets would be empty.
          return (
            <Suspense>
              <GettingStarted otherwise={content} />
            </Suspense>
          )
        }}
      </Loaded>
    </Page>
  )
}

const rangeWidgets = new Set(['cluster-health', 'job-numbers', 'clusters-over-time', 'jobs-over-time'])

const EmptyDashboard = ({ onEdit }: { onEdit: () => void }) => (
  <EmptyState
    icon={LayoutDashboard}
    title="The dashboard is empty"
    action={<Button onClick={onEdit}>Add widgets</Button>}
  >
    Add the widgets that you want to see.
  </EmptyState>
)

const shortNames: Record<Range, string> = { day: '24 h', week: '7 d', month: '30 d' }

function RangeChoice() {
  const range = useRange()
  const navigate = useNavigate()
  const choose = (nextRange: Range) =>
    void navigate({ to: '/dashboard', search: nextRange === 'day' ? {} : { range: nextRange }, replace: true })
  return (
    <div role="group" aria-label="Period" className={styles['ranges']}>
      {rangeList.map((each) => (
        <button
          key={each}
          type="button"
          title={`Last ${rangeNames[each]}`}
          aria-pressed={each === range}
          onClick={() => choose(each)}
        >
          {shortNames[each]}
        </button>
      ))}
    </div>
  )
}
