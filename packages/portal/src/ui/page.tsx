import { Link, type LinkProps } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { configurationQuery } from '../api/account.ts'
import { queries } from '../api/query.ts'
import { classes } from './class-names.ts'
import styles from './page.module.css'

interface PageProps {
  /** The only h1 of the page, also used as the document title. */
  title: string
  /** The document title, if it has more than the heading. */
  tabTitle?: string | undefined
  badge?: ReactNode
  lead?: ReactNode
  parent?: { label: string; to: NonNullable<LinkProps['to']> }
  actions?: ReactNode
  /** Whether the width is limited, for forms and texts. */
  isNarrow?: boolean
  children: ReactNode
}

export function Page({ title, tabTitle = title, badge, lead, parent, actions, isNarrow = false, children }: PageProps) {
  useTitle(tabTitle)
  return (
    <div className={classes(styles['page'], isNarrow && styles['narrow'])}>
      <header className={styles['head']}>
        <div className={styles['titles']}>
          {parent && (
            <nav aria-label="Breadcrumb" className={styles['trail']}>
              <Link to={parent.to}>{parent.label}</Link> /
            </nav>
          )}
          <h1>
            {title} {badge}
          </h1>
          {lead !== undefined && <p className={styles['lead']}>{lead}</p>}
        </div>
        {actions !== undefined && <div className={styles['actions']}>{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export function useTitle(title: string): void {
  useEffect(() => {
    const name = queries.getQueryData(configurationQuery.queryKey)?.platformName ?? 'Platform'
    document.title = `${title} · ${name}`
  }, [title])
}
