import { Link, type LinkProps } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { configurationQuery } from '../api/account.ts'
import { queries } from '../api/query.ts'
import { classes } from './class-names.ts'
import styles from './page.module.css'

interface PageProps {
  /** The page's one heading of the first level, and the title of the tab. */
  title: string
  /** Beside the heading: a badge. */
  mark?: ReactNode
  lead?: ReactNode
  /** The page that this one is below. */
  trail?: { label: string; to: NonNullable<LinkProps['to']> }
  actions?: ReactNode
  /** For forms and texts. */
  isNarrow?: boolean
  children: ReactNode
}

/** A page of the portal. */
export function Page({ title, mark, lead, trail, actions, isNarrow = false, children }: PageProps) {
  useTitle(title)
  return (
    <div className={classes(styles['page'], isNarrow && styles['narrow'])}>
      <header className={styles['head']}>
        <div className={styles['titles']}>
          {trail && (
            <nav aria-label="Breadcrumb" className={styles['trail']}>
              <Link to={trail.to}>{trail.label}</Link> /
            </nav>
          )}
          <h1>
            {title} {mark}
          </h1>
          {lead !== undefined && <p className={styles['lead']}>{lead}</p>}
        </div>
        {actions !== undefined && <div className={styles['actions']}>{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** Names the tab after what it shows. */
export function useTitle(title: string): void {
  useEffect(() => {
    const name = queries.getQueryData(configurationQuery.queryKey)?.platformName ?? 'Platform'
    document.title = `${title} · ${name}`
  }, [title])
}
