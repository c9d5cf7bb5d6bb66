/* Routings: which slots each expert has. */
#include "experts.h"

lpgemm_status_t lpgemm_i_check_route(int64_t m, int32_t top_k, int32_t experts, lpg_routing *routing) {
  LPG_CHECK(top_k >= 1 && top_k <= LPG_MOST_TOP_K, LPGEMM_INVALID_ARGUMENT, "top_k is %d; it must be 1 to %d", top_k,
            LPG_MOST_TOP_K);
  LPG_CHECK(experts >= 1 && experts <= LPG_MOST_EXPERTS, LPGEMM_INVALID_ARGUMENT, "experts is %d; it must be 1 to %d",
            experts, LPG_MOST_EXPERTS);
  LPG_CHECK(m >= 0, LPGEMM_INVALID_SIZE, "m is %lld; it must be 0 or more", (long long)m);
  LPG_CHECK(m <= INT32_MAX / top_k, LPGEMM_SIZE_OVERFLOW, "m is %lld; with top_k = %d at most %d tokens fit",
            (long long)m, top_k, INT32_MAX / top_k);
  *routing = lpg_routing_of(m, top_k, experts);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_read_route(const lpgemm_route_args_t *from, lpgemm_route_args_t *args) {
  LPG_CHECK(from, LPGEMM_NULL_POINTER,
            "the routing's arguments are NULL: args of lpgemm_route(), args.route of a layer");
  LPG_TRY(lpgemm_i_copy_struct(args, sizeof *args, sizeof *args, from, "route"));
  return lpgemm_i_check_reserved(&args->reserved, 1, "route");
}

/* Arguments, and memory for a routing by them. */
static lpgemm_status_t read_all(lpgemm_handle_t handle, const lpgemm_route_args_t *from, const void *routing,
                                lpgemm_route_args_t *args, lpg_routing *layout) {
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_TRY(lpgemm_i_read_route(from, args));
  LPG_TRY(lpgemm_i_check_route(args->m, args->top_k, args->experts, layout));
  LPG_CHECK(routing, LPGEMM_NULL_POINTER, "routing is NULL");
  LPG_CHECK((uintptr_t)routing % 256 == 0, LPGEMM_MISALIGNED, "routing is %p; it must be 256-byte aligned", routing);
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_route(lpgemm_handle_t handle, const lpgemm_route_args_t *args, int64_t first, int64_t m,
                               void *memory) {
  const lpg_routing layout = lpg_routing_of(m, args->top_k, args->experts);
  uint8_t *at = memory;
  const lpg_route route = {.m = m,
                           .top_k = args->top_k,
                           .experts = args->experts,
                           .first_expert = args->first_expert,
                           .parts = layout.parts,
                           .expert = m > 0 ? args->expert + first * args->top_k : NULL,
                           .offsets = (int32_t *)(void *)(at + layout.offsets),
                           .left_out = (int32_t *)(void *)(at + layout.left_out),
                           .token = (int32_t *)(void *)(at + layout.token),
                           .position = (int32_t *)(void *)(at + layout.position),
                           .counts = (int32_t *)(void *)(at + layout.counts)};
  return handle->backend->route(handle, &route);
}

/* ---- the calls ---- */

lpgemm_status_t lpgemm_route_size(lpgemm_handle_t handle, int64_t m_max, int32_t top_k, int32_t experts,
                                  size_t *bytes) {
  lpg_routing layout;
  LPG_TRY(lpgemm_i_check_handle(handle));
  LPG_CHECK(bytes, LPGEMM_NULL_POINTER, "bytes is NULL");
  LPG_TRY(lpgemm_i_check_route(m_max, top_k, experts, &layout));
  *bytes = layout.bytes;
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_route(lpgemm_handle_t handle, const lpgemm_route_args_t *args, void *routing,
                             size_t routing_bytes) {
  lpgemm_route_args_t a;
  lpg_routing layout;
  LPG_TRY(read_all(handle, args, routing, &a, &layout));
  LPG_CHECK(routing_bytes >= layout.bytes, LPGEMM_BUFFER_TOO_SMALL,
            "routing_bytes is %zu; lpgemm_route_size() says %zu", routing_bytes, layout.bytes);
  if (a.m > 0) LPG_TRY(lpgemm_i_check_pointer("route.expert", a.expert, LPGEMM_I32));
  int32_t before;
  LPG_TRY(lpgemm_i_enter(handle, &before));
  const lpgemm_status_t status = lpgemm_i_route(handle, &a, 0, a.m, routing);
  lpgemm_i_leave(handle, before);
  return status;
}

lpgemm_status_t lpgemm_routing_view(lpgemm_handle_t handle, const lpgemm_route_args_t *args, const void *routing,
                                    lpgemm_routing_view_t *view) {
  lpgemm_route_args_t a;
  lpg_routing layout;
  lpgemm_routing_view_t v;
  LPG_TRY(read_all(handle, args, routing, &a, &layout));
  LPG_CHECK(view, LPGEMM_NULL_POINTER, "view is NULL");
  LPG_TRY(lpgemm_i_copy_struct(&v, sizeof v, sizeof v, view, "view"));
  const uint8_t *at = routing;
  view->offsets = (const int32_t *)(const void *)(at + layout.offsets);
  view->token = (const int32_t *)(const void *)(at + layout.token);
  view->position = (const int32_t *)(const void *)(at + layout.position);
  view->left_out = (const int32_t *)(const void *)(at + layout.left_out);
  return LPGEMM_SUCCESS;
}
