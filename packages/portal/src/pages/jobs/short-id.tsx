import styles from './jobs.module.css'

/** The end of an id; screen readers get the whole. */
export const ShortId = ({ id }: { id: string }) => (
  <>
    <code aria-hidden className={styles['short']} title={id}>
      {id.slice(-6)}
    </code>
    <span className="visually-hidden">{id}</span>
  </>
)
