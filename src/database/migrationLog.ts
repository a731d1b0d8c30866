/** Log interface of migrating; implemented by the service's log. */
export interface MigrationLog {
  info(fields: { event: string; [name: string]: unknown }, message: string): void;
  warn(fields: { event: string; [name: string]: unknown }, message: string): void;
  error(fields: { event: string; [name: string]: unknown }, message: string): void;
}
